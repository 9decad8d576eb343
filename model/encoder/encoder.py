"""The one tied encoder, configurable from the bare reference form to BERT.

Design choices:
- One Parameter, `embeddings.word.weight`, is both the token lookup and the output projection.
  There is no second attribute that aliases it, so no copy, move or save can split the two, and
  its gradient is the sum of both paths. Only checkpoints that were trained with two tables have
  `output_table.weight` as well.
- Only masked positions reach the head: logits are (M, V), never (N, T, V).
- Parameters have short field names, which the families map checkpoints onto.

Shapes: N batch, T tokens, D d_model, E width of the table, V vocabulary, M masked positions of the
whole batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from model.encoder.block import Block, View, bias_by_distance, gelu, views
from model.encoder.config import EncoderConfig
from model.encoder.embeddings import Embeddings
from model.encoder.layers import layer_norm

TABLE = "embeddings.word.weight"  # the name of the one table, lookup and output projection
OUTPUT_TABLE = "output_table.weight"  # the second one of an encoder that is not tied
INIT_STD = 0.02  # Devlin et al. 2019


def output_table(config: EncoderConfig) -> str:
    """The name of the table that is the output projection."""
    return TABLE if config.tied else OUTPUT_TABLE


class TiedEncoder(nn.Module):
    """A masked-language-model encoder whose embedding table is its output projection.

    Args:
        config: sizes and choices.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = nn.ModuleList(Block(config, n) for n in range(config.num_blocks))
        if config.relative_buckets:
            bias_BH = torch.zeros(config.relative_buckets, config.num_heads)
            self.relative_bias = nn.Parameter(bias_BH)
        self.final_norm = layer_norm(config, config.d_model) if config.final_norm else nn.Identity()
        self.head = HeadTransform(config) if config.head_transform else nn.Identity()
        if not config.tied:
            self.output_table = nn.Embedding(config.vocab_size, config.table_width)
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
        masked_NT = mask_indicator > 0.5
        return self.project(self.hidden(input_ids, attention_mask, token_type_ids, masked_NT))

    def hidden(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        at_NT: Tensor | None = None,
    ) -> Tensor:
        """The last hidden states, (N, T, D), or (M, D) where the boolean `at_NT` is True.

        The other arguments are those of `forward`.
        """
        if input_ids.shape[1] > self.config.max_positions:
            raise ValueError(
                f"input_ids have {input_ids.shape[1]} positions, "
                f"this encoder takes at most {self.config.max_positions}"
            )
        if token_type_ids is not None and not self.config.type_vocab_size:
            raise ValueError("token_type_ids are given, and this encoder has no token types")
        x_NTD = self.embeddings(input_ids, attention_mask, token_type_ids)
        views = self.views(input_ids.shape[1], attention_mask)
        last = self.config.num_layers - 1
        for layer in range(last):
            x_NTD = self.run_layer(layer, x_NTD, views)
        hidden: Tensor = self.final_norm(self.run_layer(last, x_NTD, views, at_NT))
        return hidden

    def run_layer(
        self, layer: int, x_NTD: Tensor, views: tuple[View, View], at_NT: Tensor | None = None
    ) -> Tensor:
        """One layer on hidden states (N, T, D); views from `views`, `at_NT` as for `hidden`."""
        view = views[layer in self.config.local_layers]
        after: Tensor = self.blocks[self.config.layers[layer]](x_NTD, view, at_NT)
        return after

    def views(self, tokens: int, attention_mask: Tensor | None) -> tuple[View, View]:
        """What attention sees in layers that see everything, and in those with a window."""
        device = self.embeddings.word.weight.device
        keep_NT = None if attention_mask is None else attention_mask != 0
        everything, window = views(self.config, device, tokens, keep_NT)
        if not self.config.relative_buckets:
            return everything, window
        biased = bias_by_distance(self.config, self.relative_bias, tokens, everything)
        return biased, biased

    def project(self, hidden_MD: Tensor) -> Tensor:
        """Logits (M, V) of hidden states (M, D), through the embedding table where it is tied."""
        return F.linear(self.head(hidden_MD), self.projection(), self.head_bias)

    def projection(self) -> Tensor:
        """(V, E): the embedding table, or the output's own where the two are not tied."""
        return self.embeddings.word.weight if self.config.tied else self.output_table.weight


class HeadTransform(nn.Module):
    """BERT's step before the projection: dense, GELU, layer norm (Devlin et al. 2019)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.table_width
        self.dense = nn.Linear(config.d_model, width, bias=config.head_dense_bias)
        self.norm = layer_norm(config, width)
        same = config.head_activation == "same"
        self.activation = config.activation if same else config.head_activation

    def forward(self, x_MD: Tensor) -> Tensor:
        """(M, D) to (M, E)."""
        normed_ME: Tensor = self.norm(gelu(self.dense(x_MD), self.activation))
        return normed_ME


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=INIT_STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
