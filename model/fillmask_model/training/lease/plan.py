"""Plan of the training in a lease, and its learning rate.

The rate follows the wall clock instead of the number of steps, because nobody knows the speed of a
borrowed GPU before the first step. It rises over the first optimizer steps, is constant, and falls
linearly to zero at the end of the planned time. Until the fall begins, the plan can become longer
or shorter, also on another day and on another machine.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import Any, Self

from fillmask_model.training.hyperparameters import check_numbers, flag

_MAY_BE_ZERO = {"average_decay", "rewarm_steps", "seed", "short_tokens", "warmup_steps"}
CODE_BITS = (8, 16)  # sizes of the integers of `fillmask_model.training.lease.weights`


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlan:
    """Hyperparameters of the training in a lease, with the meaning of each in its metadata.

    A step computes the gradient of a pass of packed rows and of a pass of short texts. All shapes
    are fixed, so that a step is a CUDA graph for each length of short texts.
    """

    row_tokens: int = flag(256, "length of a packed row")
    packed_rows: int = flag(256, "packed rows per step")
    short_tokens: int = flag(65_536, "tokens of short texts per step, padding included, or 0")
    short_lengths: tuple[int, ...] = flag(
        (16, 24, 32, 48, 64), "lengths to which short texts are padded"
    )
    # twice the rate of `make train-default`, whose batches are a 16th as large; the square root of
    # the sizes would give four times, but a run that diverges would waste the lease
    learning_rate: float = flag(1e-3, "peak learning rate")
    warmup_steps: int = flag(200, "steps with a linear rise to the peak")
    rewarm_steps: int = flag(50, "steps of the rise after a restart without optimizer state")
    decay_share: float = flag(0.3, "share of the planned time with a linear fall to zero")
    average_decay: float = flag(0.998, "share of the weights' average that each step keeps")
    weight_decay: float = flag(0.01, "weight decay of AdamW for matrices")
    clip_norm: float = flag(1.0, "maximum of the global gradient norm")
    select_rate: float = flag(0.3, "share of tokens to predict")
    seed: int = flag(0, "seed of the order of rows and of masking")
    read_every_steps: int = flag(10, "steps between two waits for the GPU, which read the loss")
    evaluation_rows: int = flag(256, "held-out packed rows per evaluation")
    result_bits: int = flag(16, "bits of a weight that a step returns, 8 or 16")

    def __post_init__(self) -> None:
        check_numbers(self, _MAY_BE_ZERO)
        for name in ("select_rate", "average_decay"):
            if not getattr(self, name) < 1:
                raise ValueError(f"{name} must be below 1 (got {getattr(self, name)!r})")
        if self.decay_share > 1:
            raise ValueError(f"decay_share must be at most 1 (got {self.decay_share!r})")
        lengths = self.short_lengths
        rising = all(first < second for first, second in itertools.pairwise((2, *lengths)))
        if not (lengths and rising and all(type(length) is int for length in lengths)):
            raise ValueError(
                f"short_lengths must be rising whole numbers above 2 (got {list(lengths)})"
            )
        if 0 < self.short_tokens < lengths[-1]:
            raise ValueError(
                f"short_tokens must be 0 or at least the longest short text, {lengths[-1]} "
                f"(got {self.short_tokens})"
            )
        if self.row_tokens < 8:
            raise ValueError(f"row_tokens must be at least 8 (got {self.row_tokens})")
        if self.result_bits not in CODE_BITS:
            raise ValueError(f"result_bits must be 8 or 16 (got {self.result_bits})")

    @property
    def tokens_per_step(self) -> int:
        """Number of tokens that a step reads at most, padding included."""
        return self.packed_rows * self.row_tokens + self.short_tokens

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Create a plan from the fields that `to_dict` returns, or from some of them.

        Raises:
            ValueError: a field is unknown or invalid.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(fields) - known):
            raise ValueError(
                f"a plan must have only known fields (unknown: {', '.join(unknown)}; known: "
                f"{', '.join(sorted(known))})"
            )
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**(fields | lists))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, as JSON has them."""
        return {**dataclasses.asdict(self), "short_lengths": list(self.short_lengths)}


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far the training of a lease is.

    Attributes:
        step: number of optimizer steps so far.
        tokens: number of tokens read so far, padding excluded.
        seconds: time on the clock of the training so far, without starts and saves of steps.
        warm_from: optimizer step at which the last rise of the learning rate began.
        rows_from: optimizer step since which the rows on the machine are the same.
        loads: names of the loads with these rows.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    warm_from: int = 0
    rows_from: int = 0
    loads: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Create the progress from the fields that `to_dict` returns."""
        return cls(**(fields | {"loads": tuple(fields["loads"])}))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, as JSON has them."""
        return {**dataclasses.asdict(self), "loads": list(self.loads)}


def learning_rate(plan: LeasePlan, progress: Progress, seconds: float, total: float) -> float:
    """Return the learning rate of the next optimizer step.

    Args:
        seconds: time of the training so far, in all steps.
        total: planned time of the training in all steps, the coming ones included.
    """
    length = plan.rewarm_steps if progress.warm_from else plan.warmup_steps
    rise = (progress.step - progress.warm_from + 1) / length if length else 1.0
    left = 1 - seconds / total if total > 0 else 0.0
    return plan.learning_rate * max(0.0, min(rise, left / plan.decay_share, 1.0))
