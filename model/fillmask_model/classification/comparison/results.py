"""Results of a comparison, with means over seeds and their 95 % confidence intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fillmask_model.bootstrap import CONFIDENCE

Method = Literal["majority", "bag_of_words", "from_scratch", "pretrained"]
METHODS: tuple[Method, ...] = get_args(Method)
NAMES: dict[Method, str] = {
    "majority": "majority class",
    "bag_of_words": "bag of words",
    "from_scratch": "from scratch",
    "pretrained": "pre-trained",
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """Accuracy of one training run on the validation rows.

    Attributes:
        method: baseline or starting point.
        size: number of training rows.
        seed: seed of the choice of training rows, of the new weights and of the order of rows.
        accuracies: accuracy after each epoch. Baselines have one accuracy.
    """

    method: Method
    size: int
    seed: int
    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        """Accuracy after the last epoch, which may not be the best epoch."""
        return self.accuracies[-1]

    @property
    def name(self) -> str:
        """Name of the file with the result."""
        return f"{self.method}-{self.size}-{self.seed}.json"

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> RunResult:
        """Create a result from the fields that `to_dict` returns."""
        return cls(**(fields | {"accuracies": tuple(fields["accuracies"])}))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean over seeds with its 95 % confidence interval.

    Attributes:
        low, high: bounds of the interval by Student's t distribution. None for a single value.
    """

    mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Compute the mean of values and its confidence interval."""
        mean = float(np.mean(values))
        if len(values) < 2:
            return cls(mean, None, None)
        half = half_width(np.array(values)[:, None])
        return cls(mean, mean - float(half[0]), mean + float(half[0]))

    def __str__(self) -> str:
        interval = "" if self.low is None else f" ({self.low:.3f} to {self.high:.3f})"
        return f"{self.mean:.3f}{interval}"


def half_width(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half the width of the 95 % confidence interval of the mean at each epoch.

    Args:
        values: (seeds, E) values of E epochs.

    Returns:
        (E,) half widths.
    """
    # imported here, because the import takes a second
    from scipy.stats import t  # noqa: PLC0415

    seeds = len(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(seeds)
    width: NDArray[np.float64] = error * t.ppf((1 + CONFIDENCE) / 2, seeds - 1)
    return width


def select_runs(results: Sequence[RunResult], method: Method, size: int) -> list[RunResult]:
    """Return the runs of a method with the given number of training rows."""
    return [run for run in results if (run.method, run.size) == (method, size)]


def summarise(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """Return the mean accuracy and its interval for each number of training rows and method."""
    summary = []
    for size in sorted({run.size for run in results}):
        for method in METHODS:
            if runs := select_runs(results, method, size):
                figures = dataclasses.asdict(Mean.of([run.accuracy for run in runs]))
                summary.append({"size": size, "method": method, "seeds": len(runs), **figures})
    return summary


def format_table(results: Sequence[RunResult]) -> str:
    """Format the means and intervals as a Markdown table.

    The table has one row per number of training rows.
    """
    methods = [method for method in METHODS if any(run.method == method for run in results)]
    lines = [
        ["training rows", *(NAMES[method] for method in methods)],
        ["---:", *("---" for _ in methods)],
    ]
    for size in sorted({run.size for run in results}):
        cells = []
        for method in methods:
            runs = select_runs(results, method, size)
            cells.append(str(Mean.of([run.accuracy for run in runs])))
        lines.append([f"{size:,}", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
