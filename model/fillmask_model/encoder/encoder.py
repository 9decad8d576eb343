"""Masked-language-model encoder with the architecture of an `EncoderConfig`.

Design choices:
- One Parameter, `embeddings.word.weight`, is both the embedding table and the output projection.
  The Parameter has no second name, so no copy, move or save can separate the two uses. The gradient
  is the sum of the gradients of both uses. Only checkpoints with an untied head also have
  `output_table.weight`.
- Only masked positions reach the head. The logits are (M, V), never (N, T, V).
- Parameters have short names. `fillmask_model.checkpoints.families` maps the names of other
  checkpoints to these names.

Shapes: N batch, T tokens, D d_model, E width of the table, V vocabulary, L labels, M masked
positions of the whole batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fillmask_model.encoder.block import (
    AttentionContext,
    Block,
    add_relative_bias,
    attention_contexts,
)
from fillmask_model.encoder.classifier import ClassificationHead, ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.embeddings import Embeddings
from fillmask_model.encoder.layers import activate, norm

TABLE = "embeddings.word.weight"  # the embedding table, tied to the output projection
OUTPUT_TABLE = "output_table.weight"  # the output projection of an untied encoder
HEAD_BIAS = "head_bias"
# name prefixes of the tensors of the masked-language-model head
HEAD_PREFIXES = ("head.", HEAD_BIAS, OUTPUT_TABLE)
INIT_STD = 0.02  # Devlin et al. 2019


def output_table(config: EncoderConfig) -> str:
    return TABLE if config.tied else OUTPUT_TABLE


def new_head(config: EncoderConfig) -> dict[str, Tensor]:
    """Return the tensors of a new masked-language-model head by name.

    The weights are random.
    """
    parts = nn.ModuleDict()
    if config.head_transform:
        parts["head"] = HeadTransform(config)
    if not config.tied:
        parts["output_table"] = nn.Embedding(config.vocab_size, config.table_width)
    tensors: dict[str, Tensor] = parts.apply(_initialise).state_dict()
    return tensors | ({HEAD_BIAS: torch.zeros(config.vocab_size)} if config.head_bias else {})


class TiedEncoder(nn.Module):
    """Masked-language-model encoder with a tied embedding table and output projection.

    Args:
        classifier: configuration of the classification head. None for an encoder without labels.
    """

    def __init__(self, config: EncoderConfig, classifier: ClassifierConfig | None = None) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = nn.ModuleList(Block(config, n) for n in range(config.num_blocks))
        if config.relative_buckets:
            bias_BH = torch.zeros(config.relative_buckets, config.num_heads)
            self.relative_bias = nn.Parameter(bias_BH)
        self.final_norm = norm(config, config.d_model) if config.final_norm else nn.Identity()
        self.head = HeadTransform(config) if config.head_transform else nn.Identity()
        if not config.tied:
            self.output_table = nn.Embedding(config.vocab_size, config.table_width)
        if config.head_bias:
            self.head_bias = nn.Parameter(torch.zeros(config.vocab_size))
        else:
            self.register_parameter("head_bias", None)
        self.classifier = None if classifier is None else ClassificationHead(config, classifier)
        self.apply(_initialise)

    def forward(
        self,
        input_ids: Tensor,
        mask_indicator: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        """Compute the logits at the masked positions.

        Args:
            input_ids: (N, T) integers in [0, V).
            mask_indicator: (N, T). A value above 0.5 marks a masked position.
            attention_mask: (N, T), nonzero for real tokens. None without padding.
            token_type_ids: (N, T) token types. None for type 0 at every position.

        Returns:
            (M, V) float logits, rows in row-major order of (sequence, position).
        """
        masked_NT = mask_indicator > 0.5
        return self.logits(self.hidden(input_ids, attention_mask, token_type_ids, masked_NT))

    def classify(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        """Compute the logits (N, L) of the labels, or (N, T, L) for labels of tokens.

        The arguments have the same form as in `forward`.

        Raises:
            ValueError: the encoder has no classification head.
        """
        if self.classifier is None:
            raise ValueError(
                "the encoder must have a classification head; pass classifier to TiedEncoder"
            )
        if self.classifier.config.pooling != "first":
            hidden = self.hidden(input_ids, attention_mask, token_type_ids)
        else:
            first_NT = torch.zeros_like(input_ids, dtype=torch.bool)
            first_NT[:, 0] = True
            hidden = self.hidden(input_ids, attention_mask, token_type_ids, first_NT)
        logits: Tensor = self.classifier(hidden, attention_mask)
        return logits

    def hidden(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        selected: Tensor | None = None,
    ) -> Tensor:
        """Compute the last hidden states.

        The other arguments have the same form as in `forward`.

        Args:
            selected: M positions to return, as `select_positions` takes them. None for all
                positions.

        Returns:
            Hidden states (M, D) with `selected`, otherwise (N, T, D).

        Raises:
            ValueError: the input is too long, or an encoder without token types gets
                token_type_ids.
        """
        if input_ids.shape[1] > self.config.max_positions:
            raise ValueError(
                f"input_ids must have at most {self.config.max_positions} positions "
                f"(got {input_ids.shape[1]})"
            )
        if token_type_ids is not None and not self.config.type_vocab_size:
            raise ValueError("token_type_ids must be None for an encoder without token types")
        x_NTD = self.embeddings(input_ids, attention_mask, token_type_ids)
        contexts = self.attention_contexts(input_ids.shape[1], attention_mask)
        last = self.config.num_layers - 1
        for layer in range(last):
            x_NTD = self.run_layer(layer, x_NTD, contexts)
        hidden: Tensor = self.final_norm(self.run_layer(last, x_NTD, contexts, selected))
        return hidden

    def run_layer(
        self,
        layer: int,
        x_NTD: Tensor,
        contexts: tuple[AttentionContext, AttentionContext],
        selected: Tensor | None = None,
    ) -> Tensor:
        """Run one layer on hidden states (N, T, D).

        Args:
            contexts: contexts of full and of local attention.
            selected: M positions to return, as `select_positions` takes them. None for all
                positions.
        """
        context = contexts[layer in self.config.local_layers]
        after: Tensor = self.blocks[self.config.layers[layer]](x_NTD, context, selected)
        return after

    def attention_contexts(
        self, tokens: int, attention_mask: Tensor | None
    ) -> tuple[AttentionContext, AttentionContext]:
        device = self.embeddings.word.weight.device
        keep_NT = None if attention_mask is None else attention_mask != 0
        full, local = attention_contexts(self.config, device, tokens, keep_NT)
        if not self.config.relative_buckets:
            return full, local
        biased = add_relative_bias(self.config, self.relative_bias, tokens, full)
        return biased, biased

    def logits(self, hidden_MD: Tensor) -> Tensor:
        """Project hidden states (M, D) to logits (M, V)."""
        return F.linear(self.head(hidden_MD), self.output_projection(), self.head_bias)

    def output_projection(self) -> Tensor:
        """Return the table (V, E) of the output projection."""
        return self.embeddings.word.weight if self.config.tied else self.output_table.weight


class HeadTransform(nn.Module):
    """Dense layer, activation and norm before the output projection (Devlin et al. 2019).

    Some encoders have a second dense layer with an activation before them, or no norm.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width, inner, bias = config.table_width, config.head_inner, config.head_dense_bias
        if inner:
            self.inner = nn.Linear(config.d_model, inner, bias=bias)
        self.dense = nn.Linear(inner or config.d_model, width, bias=bias)
        self.norm = norm(config, width) if config.head_norm else nn.Identity()
        self.has_inner = bool(inner)
        self.activation = config.activation_of_head

    def forward(self, x_MD: Tensor) -> Tensor:
        """Map hidden states (M, D) to (M, E)."""
        if self.has_inner:
            x_MD = activate(self.inner(x_MD), self.activation)
        normed_ME: Tensor = self.norm(activate(self.dense(x_MD), self.activation))
        return normed_ME


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=INIT_STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
