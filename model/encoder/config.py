"""Configuration of an encoder: every choice that changes its mathematics."""

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
# sizes of optional parts
_OPTIONAL_SIZES = ("type_vocab_size", "embedding_size", "relative_buckets", "local_window")


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """Sizes and choices of a masked-language-model encoder.

    The defaults are BERT's (Devlin et al. 2019). `EncoderConfig.packed` returns the minimal
    pre-norm form that `model.forward` computes.

    Attributes:
        vocab_size: rows of the embedding table, V.
        d_model: width of the hidden states, D; a multiple of num_heads.
        num_layers: encoder layers.
        num_heads: attention heads, H.
        d_ff: width of the feed-forward layer.
        max_positions: longest input in tokens.
        type_vocab_size: token types that have an embedding; 0 for none.
        norm_placement: "post" normalises after each residual sum (BERT), "pre" before attention and
            before the feed-forward network.
        norm_affine: layer norms have a scale and a shift.
        norm_eps: added to the variance in every layer norm.
        embedding_norm: normalise the sum of the embeddings.
        final_norm: normalise the last hidden states (pre-norm encoders usually do).
        attention_bias: biases on query, key, value and output projections.
        ffn_bias: biases of the feed-forward network: "none", "input" (first linear layer only) or
            "both".
        activation: GELU by tanh or by erf (Hendrycks & Gimpel 2016).
        positions: learned, or fixed sinusoids without parameters (Vaswani et al. 2017, 3.5).
        head_transform: BERT's dense, GELU and layer norm between encoder and projection.
        head_bias: add one bias per vocabulary entry to the logits.
        tied: the embedding table is the output projection; else `output_table.weight` is.
        embedding_size: width E of the embeddings and of the head's outputs if it is not D; a
            projection maps the embeddings from E to D (Lan et al. 2020, section 3.1). 0 for D.
        block_order: the block of each layer if layers share blocks (Lan et al. 2020, section 3.1);
            empty for one block per layer.
        rotary_base: base of the rotary position embeddings (Su et al. 2021, section 3.2); None
            without them. The layers in local_layers use local_rotary_base.
        local_layers: layers whose tokens attend to others up to local_window positions away (Warner
            et al. 2024, section 2.1); ascending.
        relative_buckets: distance buckets of the relative position bias on attention scores (Raffel
            et al. 2020, section 2.1), shared by all layers; 0 for no bias.
        gated_ffn: multiply the activation by the output of a second linear layer (Shazeer 2020).
        norm_bias: affine layer norms have a shift.
        first_attention_norm: the first block of a pre-norm encoder normalises before attention.
        head_activation: activation of the head transform; "same" for that of the blocks.
        head_dense_bias: bias of the head's dense layer.
        token_dropout_id: id of the mask token if its embedding is set to zero and the embeddings of
            the other tokens are scaled up (Rives et al. 2021, as in ESM-2); else None.
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
                if type(value) is not int or value < least:
                    raise ValueError(
                        f"{name} must be a whole number of at least {least}, not {value!r}"
                    )
        if self.d_model % self.num_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads})"
            )
        if not isinstance(self.norm_eps, float) or not 0 < self.norm_eps < 1:
            raise ValueError(f"norm_eps must be between 0 and 1, not {self.norm_eps!r}")
        if self.embedding_size not in {0, self.d_model} and not self.head_transform:
            raise ValueError("an embedding_size other than d_model needs head_transform")

    def _check_choices(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
        # a configuration comes from JSON, where the string "false" would count as true
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "bool" and type(value) is not bool:
                raise ValueError(f"{field.name} must be true or false, not {value!r}")

    def _check_layers(self) -> None:
        layers = range(self.num_layers)
        for name in ("block_order", "local_layers"):
            numbers = getattr(self, name)
            if not (
                isinstance(numbers, tuple) and all(type(n) is int and n in layers for n in numbers)
            ):
                raise ValueError(
                    f"{name} must contain whole numbers below {len(layers)}, not {numbers!r}"
                )
        if self.block_order and len(self.block_order) != self.num_layers:
            raise ValueError(f"block_order must name a block for each of {self.num_layers} layers")
        if set(self.layers) != set(range(self.num_blocks)):
            raise ValueError(f"block_order must use every block below {self.num_blocks}")
        if tuple(sorted(set(self.local_layers))) != self.local_layers:
            raise ValueError(f"local_layers must be ascending, not {self.local_layers!r}")
        if bool(self.local_layers) != bool(self.local_window):
            raise ValueError("local_layers and local_window must be set together")
        if self.local_layers and self.relative_buckets:
            raise ValueError("local_layers and relative_buckets cannot be combined")

    def _check_positions(self) -> None:
        for name in ("rotary_base", "local_rotary_base"):
            base = getattr(self, name)
            if base is not None and not (type(base) is float and 1 < base < float("inf")):
                raise ValueError(f"{name} must be a number above 1, not {base!r}")
        if self.rotary_base is not None and (self.d_model // self.num_heads) % 2:
            raise ValueError(f"rotary_base needs an even head width (got {self.head_width})")
        wanted = self.rotary_base is not None and bool(self.local_layers)
        if (self.local_rotary_base is not None) != wanted:
            raise ValueError(
                "local_rotary_base must be set if and only if rotary_base and local_layers are"
            )
        if self.relative_buckets % 4:
            raise ValueError(
                f"relative_buckets must be a multiple of 4, not {self.relative_buckets}"
            )
        token = self.token_dropout_id
        if token is not None and not (type(token) is int and 0 <= token < self.vocab_size):
            raise ValueError(
                f"token_dropout_id must be a whole number below {self.vocab_size}, not {token!r}"
            )

    @property
    def table_width(self) -> int:
        """Width E of the embedding table."""
        return self.embedding_size or self.d_model

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
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
        """Return the configuration that `model.forward.mlm_forward_tied` computes."""
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
        """Read a configuration that `to_dict` wrote.

        Raises:
            ValueError: a field is unknown, missing or out of range.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        required = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
        if unknown := sorted(set(fields) - known):
            raise ValueError(f"unknown configuration fields: {', '.join(unknown)}")
        if missing := sorted(required - set(fields)):
            raise ValueError(f"missing configuration fields: {', '.join(missing)}")
        # JSON has no tuples
        tuples = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**(fields | tuples))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return dataclasses.asdict(self)
