"""Configuration of an encoder, with every choice that changes its mathematics."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from fillmask_model.encoder.validation import check_encoder_config
from fillmask_model.files import read_object

NormPlacement = Literal["pre", "post"]
NormKind = Literal["layer", "rms"]
Activation = Literal["gelu_tanh", "gelu_erf", "silu", "relu"]
HeadActivation = Literal[Activation, "same"]
Positions = Literal["learned", "fixed", "none"]
FfnBias = Literal["none", "input", "output", "both"]

_NEW_ENCODER = {"d_model": 256, "num_layers": 4, "num_heads": 4, "d_ff": 1024}
_CHOICES: dict[str, Any] = {
    "norm_placement": NormPlacement,
    "norm_kind": NormKind,
    "activation": Activation,
    "positions": Positions,
    "ffn_bias": FfnBias,
    "head_activation": HeadActivation,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """Sizes and architecture of a masked-language-model encoder.

    The defaults are BERT's (Devlin et al. 2019). `EncoderConfig.packed` returns the minimal
    pre-norm form that `fillmask_model.forward` computes.

    Attributes:
        vocab_size: number V of rows of the embedding table.
        d_model: width D of the hidden states, a multiple of num_heads.
        num_heads: number H of attention heads.
        d_ff: width of the feed-forward layer.
        max_positions: maximum length of an input in tokens.
        type_vocab_size: number of token types with an embedding. 0 without token types.
        norm_placement: "post" for a layer norm after each residual sum (BERT). "pre" for layer
            norms before attention and before the feed-forward network.
        norm_kind: "layer" for layer norms, or "rms" for norms by the root mean square, which
            subtract no mean and have no shift (Zhang & Sennrich 2019).
        norm_affine: whether layer norms have a scale and, with norm_bias, a shift.
        norm_eps: constant that every layer norm adds to the variance.
        embedding_norm: whether a layer norm follows the sum of the embeddings.
        final_norm: whether a layer norm follows the last block, as in most pre-norm encoders.
        attention_bias: whether query, key, value and output projections have biases.
        query_key_norm: whether norms follow the query and key projections (Henry et al. 2020). They
            normalise all heads together and have no shift.
        ffn_bias: "none", "input" for biases in the first feed-forward layer or its gate, "output"
            for a bias in the last layer, or "both".
        activation: GELU by tanh or by erf (Hendrycks & Gimpel 2016), SiLU (Elfwing et al. 2018) or
            ReLU.
        positions: "learned", "fixed" for sinusoids (Vaswani et al. 2017, section 3.5), or "none".
        head_transform: whether BERT's dense layer, activation and norm precede the output
            projection.
        head_inner: width of another dense layer with an activation before the dense layer of the
            head transform. 0 without this layer.
        head_norm: whether the head transform ends with a norm.
        head_bias: whether the logits have one bias per vocabulary entry.
        tied: whether the embedding table is also the output projection. The output projection of an
            untied encoder is `output_table.weight`.
        embedding_size: width E of the embeddings and of the head transform. A projection maps the
            embeddings from E to D (Lan et al. 2020, section 3.1). 0 for width D and no projection.
        block_order: index of the block of each layer, if layers share blocks (Lan et al. 2020,
            section 3.1). Empty for one block per layer.
        rotary_base: base of the rotary position embeddings (Su et al. 2021, section 3.2). None
            without rotary embeddings.
        rotary_frequencies: angle in radians per position of each pair of a head's channels. Empty
            for the frequencies that follow from rotary_base. Layers in local_layers use
            local_rotary_base alone.
        rotary_gain: factor of the rotated queries and keys, as in YaRN (Peng et al. 2023, section
            3.4). Layers in local_layers have no factor.
        local_rotary_base: rotary_base of the layers in local_layers. None without such layers.
        local_layers: ascending indices of the layers with local attention (Warner et al. 2024,
            section 2.1).
        local_window: maximum distance of local attention between query and key, in positions. 0
            without local attention.
        relative_buckets: number of distance buckets of the relative position bias, which all layers
            share (Raffel et al. 2020, section 2.1). 0 without a bias.
        gated_ffn: whether the output of a second linear layer multiplies the activation (Shazeer
            2020).
        norm_bias: whether affine layer norms have a shift.
        first_attention_norm: whether a layer norm precedes attention in the first pre-norm block.
        head_activation: activation of the head transform. "same" for the activation of the blocks.
        head_dense_bias: whether the head's dense layer has a bias.
        token_dropout_id: id of the mask token in an encoder with token dropout, else None. Token
            dropout sets the embeddings of masks to zero and rescales the other embeddings (Rives et
            al. 2021, as in ESM-2).
    """

    vocab_size: int
    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    max_positions: int
    type_vocab_size: int = 2
    norm_placement: NormPlacement = "post"
    norm_kind: NormKind = "layer"
    norm_affine: bool = True
    norm_eps: float = 1e-12
    embedding_norm: bool = True
    final_norm: bool = False
    attention_bias: bool = True
    query_key_norm: bool = False
    ffn_bias: FfnBias = "both"
    activation: Activation = "gelu_erf"
    positions: Positions = "learned"
    head_transform: bool = True
    head_inner: int = 0
    head_norm: bool = True
    head_bias: bool = True
    tied: bool = True
    embedding_size: int = 0
    block_order: tuple[int, ...] = ()
    rotary_base: float | None = None
    rotary_frequencies: tuple[float, ...] = ()
    rotary_gain: float = 1.0
    local_rotary_base: float | None = None
    local_layers: tuple[int, ...] = ()
    local_window: int = 0
    relative_buckets: int = 0
    gated_ffn: bool = False
    norm_bias: bool = True
    first_attention_norm: bool = True
    head_activation: HeadActivation = "same"
    head_dense_bias: bool = True
    token_dropout_id: int | None = None

    def __post_init__(self) -> None:
        check_encoder_config(self, _CHOICES)

    @property
    def ffn_in_bias(self) -> bool:
        return self.ffn_bias in {"input", "both"}

    @property
    def ffn_out_bias(self) -> bool:
        return self.ffn_bias in {"output", "both"}

    @property
    def activation_of_head(self) -> str:
        return self.activation if self.head_activation == "same" else self.head_activation

    @property
    def table_width(self) -> int:
        """Width E of the embedding table."""
        return self.embedding_size or self.d_model

    @property
    def head_width(self) -> int:
        """Width d of one attention head."""
        return self.d_model // self.num_heads

    @property
    def num_blocks(self) -> int:
        """Number of distinct blocks."""
        return max(self.block_order) + 1 if self.block_order else self.num_layers

    @property
    def layers(self) -> tuple[int, ...]:
        """Block index of each layer."""
        return self.block_order or tuple(range(self.num_layers))

    @classmethod
    def packed(
        cls, *, vocab_size: int, d_model: int, num_layers: int, num_heads: int, max_positions: int
    ) -> Self:
        """Return the configuration of the encoder in `fillmask_model.forward.mlm_forward_tied`."""
        return cls(
            vocab_size=vocab_size,
            d_model=d_model,
            num_layers=num_layers,
            num_heads=num_heads,
            d_ff=d_model,
            max_positions=max_positions,
            type_vocab_size=0,
            norm_placement="pre",
            norm_affine=False,
            norm_eps=1e-5,
            embedding_norm=False,
            final_norm=False,
            attention_bias=False,
            ffn_bias="none",
            activation="gelu_tanh",
            positions="learned",
            head_transform=False,
            head_bias=False,
        )

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Create a configuration from the fields that `to_dict` returns.

        Raises:
            ValueError: a field is unknown, missing or invalid.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        required = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
        if unknown := sorted(set(fields) - known):
            raise ValueError(
                f"the configuration must have only known fields (unknown: {', '.join(unknown)}); "
                "remove every unknown field"
            )
        if missing := sorted(required - set(fields)):
            raise ValueError(
                f"every required field must be present (missing: {', '.join(missing)})"
            )
        # JSON has no tuples
        tuples = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**(fields | tuples))

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def new_encoder_config(path: Path | None, vocab_size: int, max_positions: int) -> EncoderConfig:
    """Return the configuration of a new encoder.

    Args:
        path: JSON file with the fields of `EncoderConfig` except `vocab_size`. None for a small
            encoder with BERT's architecture.
        vocab_size: number of tokens of the tokenizer.
        max_positions: maximum length of an input of the small encoder in tokens.

    Raises:
        ValueError: the file is invalid or missing.
    """
    if path is None:
        fields = {**_NEW_ENCODER, "max_positions": max_positions}
    else:
        fields = read_object(path)
        if "vocab_size" in fields:
            raise ValueError(f"{path} has vocab_size, which the tokenizer sets; remove vocab_size")
    return EncoderConfig.from_dict({**fields, "vocab_size": vocab_size})
