"""The one tied encoder, configurable from the bare reference form to BERT.

Design choices:
- One Parameter, `embeddings.word.weight`, is both the token lookup and the output projection.
  There is no second attribute that aliases it, so no copy, move or save can split the two, and
  its gradient is the sum of both paths.
- Only masked positions reach the head: logits are (M, V), never (N, T, V).
- Parameters have short field names, which the families map checkpoints onto.

Shapes: N batch, T tokens, D d_model, V vocabulary, H heads, M masked positions of the whole batch.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from model.config import EncoderConfig

TABLE = "embeddings.word.weight"  # the name of the one table, lookup and output projection
INIT_STD = 0.02  # Devlin et al. 2019


class TiedEncoder(nn.Module):
    """A masked-language-model encoder whose embedding table is its output projection.

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.final_norm = _norm(config) if config.final_norm else nn.Identity()
        self.head = HeadTransform(config) if config.head_transform else nn.Identity()
        if config.head_bias:
            self.head_bias = nn.Parameter(torch.zeros(config.vocab_size))
        else:
            self.register_parameter("head_bias", None)
        self.apply(_initialise)

    def forward(
        self,
        input_ids: Tensor,
        mask_indicator: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        """Logits at the masked positions.

        Args:
            input_ids: (N, T) integers in [0, V).
            mask_indicator: (N, T); a position is masked where the value exceeds 0.5.
            attention_mask: (N, T), nonzero for real tokens; None where nothing is padding.
            token_type_ids: (N, T); None for type 0 throughout.

        Returns:
            (M, V) float logits, rows in row-major order of (sequence, position).
        """
        hidden_NTD = self.hidden(input_ids, attention_mask, token_type_ids)
        return self.project(hidden_NTD[mask_indicator > 0.5])

    def hidden(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        """The last hidden states, (N, T, D); arguments as for `forward`."""
        if input_ids.shape[1] > self.config.max_positions:
            raise ValueError(
                f"input_ids have {input_ids.shape[1]} positions, "
                f"this encoder takes at most {self.config.max_positions}"
            )
        if token_type_ids is not None and not self.config.type_vocab_size:
            raise ValueError("token_type_ids are given, and this encoder has no token types")
        keep_N11T = None if attention_mask is None else (attention_mask != 0)[:, None, None, :]
        x_NTD = self.embeddings(input_ids, token_type_ids)
        for block in self.blocks:
            x_NTD = block(x_NTD, keep_N11T)
        hidden_NTD: Tensor = self.final_norm(x_NTD)
        return hidden_NTD

    def project(self, hidden_MD: Tensor) -> Tensor:
        """Logits (M, V) of hidden states (M, D), through the embedding table."""
        return F.linear(self.head(hidden_MD), self.embeddings.word.weight, self.head_bias)


class Embeddings(nn.Module):
    """Word + position + token type, normalised where the config says so."""

    sinusoids: Tensor

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.d_model)
        if config.positions == "learned":
            self.position = nn.Embedding(config.max_positions, config.d_model)
        else:
            self.register_buffer("sinusoids", fixed_positions(config), persistent=False)
        if config.type_vocab_size:
            self.token_type = nn.Embedding(config.type_vocab_size, config.d_model)
        self.norm = _norm(config) if config.embedding_norm else nn.Identity()
        self.config = config

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        """(N, T) ids to (N, T, D)."""
        T = input_ids.shape[1]
        x_NTD = self.word(input_ids) + self.position_table()[:T]
        if self.config.type_vocab_size:
            types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
            x_NTD = x_NTD + self.token_type(types)
        normed_NTD: Tensor = self.norm(x_NTD)
        return normed_NTD

    def position_table(self) -> Tensor:
        """(max_positions, D)."""
        return self.position.weight if self.config.positions == "learned" else self.sinusoids


class Block(nn.Module):
    """Attention and feed-forward part, each with its residual and its norm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        linear = partial(nn.Linear, config.d_model, config.d_model, bias=config.attention_bias)
        self.query = linear()
        self.key = linear()
        self.value = linear()
        self.output = linear()
        self.attention_norm = _norm(config)
        self.ffn_in = nn.Linear(config.d_model, config.d_ff, bias=config.ffn_bias != "none")
        self.ffn_out = nn.Linear(config.d_ff, config.d_model, bias=config.ffn_bias == "both")
        self.ffn_norm = _norm(config)
        self.num_heads = config.num_heads
        self.pre_norm = config.norm_placement == "pre"
        self.activation = config.activation

    def forward(self, x_NTD: Tensor, keep_N11T: Tensor | None) -> Tensor:
        """(N, T, D) to (N, T, D); `keep_N11T` is False for padding keys."""
        if self.pre_norm:
            x_NTD = x_NTD + self._attend(self.attention_norm(x_NTD), keep_N11T)
            return x_NTD + self._feed_forward(self.ffn_norm(x_NTD))
        x_NTD = self.attention_norm(x_NTD + self._attend(x_NTD, keep_N11T))
        normed_NTD: Tensor = self.ffn_norm(x_NTD + self._feed_forward(x_NTD))
        return normed_NTD

    def _attend(self, x_NTD: Tensor, keep_N11T: Tensor | None) -> Tensor:
        N, T, D = x_NTD.shape
        q, k, v = (
            part(x_NTD).view(N, T, self.num_heads, D // self.num_heads).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        mixed_NHTd = F.scaled_dot_product_attention(q, k, v, attn_mask=keep_N11T)
        output_NTD: Tensor = self.output(mixed_NHTd.transpose(1, 2).reshape(N, T, D))
        return output_NTD

    def _feed_forward(self, x_NTD: Tensor) -> Tensor:
        output_NTD: Tensor = self.ffn_out(gelu(self.ffn_in(x_NTD), self.activation))
        return output_NTD


class HeadTransform(nn.Module):
    """BERT's step before the projection: dense, GELU, layer norm (Devlin et al. 2019)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.norm = _norm(config)
        self.activation = config.activation

    def forward(self, x_MD: Tensor) -> Tensor:
        """(M, D) to (M, D)."""
        normed_MD: Tensor = self.norm(gelu(self.dense(x_MD), self.activation))
        return normed_MD


def gelu(x: Tensor, activation: str) -> Tensor:
    """GELU, by tanh or by erf (Hendrycks & Gimpel 2016)."""
    return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")


def fixed_positions(config: EncoderConfig) -> Tensor:
    """Sinusoids (max_positions, D) of Vaswani et al. 2017, section 3.5."""
    position = torch.arange(config.max_positions, dtype=torch.float64)[:, None]
    even = torch.arange(0, config.d_model, 2, dtype=torch.float64)
    angle = position * torch.exp(-math.log(10_000.0) * even / config.d_model)
    table = torch.zeros(config.max_positions, config.d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)[:, : config.d_model // 2]
    return table.float()


def _norm(config: EncoderConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.d_model, config.norm_eps, elementwise_affine=config.norm_affine)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=INIT_STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
