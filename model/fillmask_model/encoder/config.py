"""Configuration of an encoder, with every choice that changes its mathematics."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

NormPlacement = Literal["pre", "post"]
Activation = Literal["gelu_tanh", "gelu_erf"]
Positions = Literal["learned", "fixed", "none"]
FfnBias = Literal["none", "input", "both"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "norm_placement": get_args(NormPlacement),
    "activation": get_args(Activation),
    "positions": get_args(Positions),
    "ffn_bias": get_args(FfnBias),
    "head_activation": (*get_args(Activation), "same"),
}
_SIZES = ("vocab_size", "d_model", "num_layers", "num_heads", "d_ff", "max_positions")
# sizes of optional parts, 0 without the part
_OPTIONAL_SIZES = ("type_vocab_size", "embedding_size", "relative_buckets", "local_window")
# The limits keep mistaken sizes from exhausting memory, and the bytes of a tensor within 64 bits.
# The largest known encoders have 250,002 tokens and 48 layers.
MAX_SIZE = 2**24
MAX_LAYERS = 1_000


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
        norm_affine: whether layer norms have a scale and, with norm_bias, a shift.
        norm_eps: constant that every layer norm adds to the variance.
        embedding_norm: whether a layer norm follows the sum of the embeddings.
        final_norm: whether a layer norm follows the last block, as in most pre-norm encoders.
        attention_bias: whether query, key, value and output projections have biases.
        ffn_bias: "none", "input" for a bias in the first feed-forward layer, or "both" for biases
            in both layers.
        activation: form of GELU, by tanh or by erf (Hendrycks & Gimpel 2016).
        positions: "learned", "fixed" for sinusoids (Vaswani et al. 2017, section 3.5), or "none".
        head_transform: whether BERT's dense layer, GELU and layer norm precede the output
            projection.
        head_bias: whether the logits have one bias per vocabulary entry.
        tied: whether the embedding table is also the output projection. The output projection of an
            untied encoder is `output_table.weight`.
        embedding_size: width E of the embeddings and of the head transform. A projection maps the
            embeddings from E to D (Lan et al. 2020, section 3.1). 0 for width D and no projection.
        block_order: index of the block of each layer, if layers share blocks (Lan et al. 2020,
            section 3.1). Empty for one block per layer.
        rotary_base: base of the rotary position embeddings (Su et al. 2021, section 3.2). None
            without rotary embeddings.
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
    norm_affine: bool = True
    norm_eps: float = 1e-12
    embedding_norm: bool = True
    final_norm: bool = False
    attention_bias: bool = True
    ffn_bias: FfnBias = "both"
    activation: Activation = "gelu_erf"
    positions: Positions = "learned"
    head_transform: bool = True
    head_bias: bool = True
    tied: bool = True
    embedding_size: int = 0
    block_order: tuple[int, ...] = ()
    rotary_base: float | None = None
    local_rotary_base: float | None = None
    local_layers: tuple[int, ...] = ()
    local_window: int = 0
    relative_buckets: int = 0
    gated_ffn: bool = False
    norm_bias: bool = True
    first_attention_norm: bool = True
    head_activation: Activation | Literal["same"] = "same"
    head_dense_bias: bool = True
    token_dropout_id: int | None = None

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_choices()
        self._check_layers()
        self._check_positions()

    def _check_sizes(self) -> None:
        for names, least in ((_SIZES, 1), (_OPTIONAL_SIZES, 0)):
            for name in names:
                value = getattr(self, name)
                most = MAX_LAYERS if name == "num_layers" else MAX_SIZE
                if type(value) is not int or not least <= value <= most:
                    raise ValueError(
                        f"{name} must be a whole number from {least} to {most} (got {value!r})"
                    )
        if self.d_model % self.num_heads:
            raise ValueError(
                f"d_model must be a multiple of num_heads (got {self.d_model} and {self.num_heads})"
            )
        if not isinstance(self.norm_eps, float) or not 0 < self.norm_eps < 1:
            raise ValueError(
                f"norm_eps must be a float above 0 and below 1 (got {self.norm_eps!r})"
            )
        if self.embedding_size not in {0, self.d_model} and not self.head_transform:
            raise ValueError(
                f"embedding_size must be 0 or d_model, {self.d_model}, if head_transform is false "
                f"(got {self.embedding_size})"
            )

    def _check_choices(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)} (got {value!r})")
        # a configuration may come from JSON, and Python treats the string "false" as true
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "bool" and type(value) is not bool:
                raise ValueError(f"{field.name} must be true or false (got {value!r})")

    def _check_layers(self) -> None:
        layers = range(self.num_layers)
        for name in ("block_order", "local_layers"):
            numbers = getattr(self, name)
            if not (
                isinstance(numbers, tuple) and all(type(n) is int and n in layers for n in numbers)
            ):
                raise ValueError(
                    f"{name} must be a list of whole numbers from 0 to {len(layers) - 1} "
                    f"(got {numbers!r})"
                )
        if self.block_order and len(self.block_order) != self.num_layers:
            raise ValueError(
                "block_order must be empty or have one entry per layer, "
                f"{self.num_layers} in total (got {len(self.block_order)})"
            )
        if set(self.layers) != set(range(self.num_blocks)):
            raise ValueError(
                f"block_order must contain every number from 0 to {self.num_blocks - 1} "
                f"(got {self.block_order!r})"
            )
        if tuple(sorted(set(self.local_layers))) != self.local_layers:
            raise ValueError(
                "local_layers must be in ascending order without repeated layers "
                f"(got {self.local_layers!r})"
            )
        if bool(self.local_layers) != bool(self.local_window):
            raise ValueError(
                "local_layers and local_window need each other; set both or neither "
                f"(got {self.local_layers!r} and {self.local_window})"
            )
        if self.local_layers and self.relative_buckets:
            raise ValueError(
                "local_layers and relative_buckets exclude each other; set relative_buckets to 0"
            )

    def _check_positions(self) -> None:
        for name in ("rotary_base", "local_rotary_base"):
            base = getattr(self, name)
            if base is not None and not (type(base) is float and 1 < base < float("inf")):
                raise ValueError(f"{name} must be a finite float above 1 (got {base!r})")
        if self.rotary_base is not None and (self.d_model // self.num_heads) % 2:
            raise ValueError(f"rotary_base needs an even head width (got {self.head_width})")
        wanted = self.rotary_base is not None and bool(self.local_layers)
        if (self.local_rotary_base is not None) != wanted:
            raise ValueError(
                "local_rotary_base must be set if and only if rotary_base and local_layers are set "
                f"(got {self.local_rotary_base!r})"
            )
        if self.relative_buckets % 4:
            raise ValueError(
                f"relative_buckets must be a multiple of 4 (got {self.relative_buckets})"
            )
        token = self.token_dropout_id
        if token is not None and not (type(token) is int and 0 <= token < self.vocab_size):
            raise ValueError(
                f"token_dropout_id must be a whole number from 0 to {self.vocab_size - 1} "
                f"(got {token!r})"
            )

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
        """Return all fields by name."""
        return dataclasses.asdict(self)
