"""What an encoder is: every choice that changes its maths, in one frozen record."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

NormPlacement = Literal["pre", "post"]
Activation = Literal["gelu_tanh", "gelu_erf"]
Positions = Literal["learned", "fixed"]
FfnBias = Literal["none", "input", "both"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "norm_placement": get_args(NormPlacement),
    "activation": get_args(Activation),
    "positions": get_args(Positions),
    "ffn_bias": get_args(FfnBias),
}
_SIZES = ("vocab_size", "d_model", "num_layers", "num_heads", "d_ff", "max_positions")


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """A tied masked-language-model encoder.

    The defaults are BERT's (Devlin et al. 2019). `EncoderConfig.packed` gives the bare pre-norm
    form of `model.forward`.

    Attributes:
        vocab_size: rows of the embedding table, V.
        d_model: width of the hidden states, D; a multiple of num_heads.
        num_layers: encoder blocks.
        num_heads: attention heads, H.
        d_ff: width of the feed-forward layer.
        max_positions: longest input in tokens.
        type_vocab_size: token types with an embedding of their own; 0 for none.
        norm_placement: "post" normalises after each residual sum (BERT), "pre" before each part.
        norm_affine: layer norms carry a scale and a shift.
        norm_eps: added to the variance in every layer norm.
        embedding_norm: normalise the sum of the embeddings.
        final_norm: normalise the last hidden states (pre-norm encoders usually do).
        attention_bias: biases on query, key, value and output projections.
        ffn_bias: biases of the feed-forward part: none, on its input product only, or on both.
        activation: GELU by tanh or by erf (Hendrycks & Gimpel 2016).
        positions: learned, or fixed sinusoids without parameters (Vaswani et al. 2017, 3.5).
        head_transform: BERT's dense, GELU and layer norm between encoder and projection.
        head_bias: one bias per vocabulary entry on the logits.
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

    def __post_init__(self) -> None:
        for name in _SIZES:
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        if type(self.type_vocab_size) is not int or self.type_vocab_size < 0:
            raise ValueError(
                f"type_vocab_size must be a whole number from 0, not {self.type_vocab_size!r}"
            )
        if self.d_model % self.num_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads})"
            )
        if not isinstance(self.norm_eps, float) or not 0 < self.norm_eps < 1:
            raise ValueError(f"norm_eps must lie between 0 and 1, not {self.norm_eps!r}")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}"
                )
        # a configuration is read from JSON, where "false" is a text and would count as true
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "bool" and type(value) is not bool:
                raise ValueError(f"{field.name} must be true or false, not {value!r}")

    @classmethod
    def packed(
        cls, *, vocab_size: int, d_model: int, num_layers: int, num_heads: int, max_positions: int
    ) -> Self:
        """The configuration that `model.forward.mlm_forward_tied` computes."""
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
        """Read what `to_dict` wrote.

        Raises:
            ValueError: a field is unknown, missing or out of range.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        required = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
        if unknown := sorted(set(fields) - known):
            raise ValueError(f"unknown configuration fields: {', '.join(unknown)}")
        if missing := sorted(required - set(fields)):
            raise ValueError(f"missing configuration fields: {', '.join(missing)}")
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How a pretraining run goes; every field is a flag of `fillmask-train pretrain`.

    Attributes:
        steps: optimizer steps of the whole run.
        row_tokens: length of each packed row, special tokens included.
        batch_rows: rows in one pass.
        accumulate_passes: passes whose gradients make one step.
        learning_rate: peak rate, reached after warm-up.
        warmup_steps: steps of linear rise to the peak; then linear decay to zero at `steps`.
        weight_decay: AdamW's, on matrices only (Loshchilov & Hutter 2019).
        clip_norm: bound on the global gradient norm.
        select_rate: share of tokens to predict.
        seed: of initial weights, order of rows and masking.
        evaluate_every_steps: interval of held-out figures.
        evaluation_rows: held-out rows scored at each interval, at most.
        checkpoint_every_steps: interval of checkpoints that `--resume` continues from.
        round_weights: hold the weights on int8's grid, see `model.rounding`; for a last phase.
    """

    steps: int = 10_000
    row_tokens: int = 128
    batch_rows: int = 32
    accumulate_passes: int = 1
    learning_rate: float = 5e-4
    warmup_steps: int = 200
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    select_rate: float = 0.15
    seed: int = 0
    evaluate_every_steps: int = 500
    evaluation_rows: int = 256
    checkpoint_every_steps: int = 500
    round_weights: bool = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            lowest = 0 if field.name in {"seed", "warmup_steps", "weight_decay"} else 1
            if field.type == "int" and (type(value) is not int or value < lowest):
                raise ValueError(
                    f"{field.name} must be a whole number of at least {lowest}, not {value!r}"
                )
            if field.type == "float" and not (value > 0 or (lowest == 0 and value == 0)):
                raise ValueError(f"{field.name} must be positive, not {value!r}")
        if self.row_tokens < 8:
            raise ValueError(f"row_tokens must be at least 8, not {self.row_tokens}")
        if not self.select_rate < 1:
            raise ValueError(f"select_rate must lie between 0 and 1, not {self.select_rate!r}")
        if self.warmup_steps >= self.steps:
            raise ValueError(
                f"warmup_steps ({self.warmup_steps}) must be fewer than steps ({self.steps})"
            )
