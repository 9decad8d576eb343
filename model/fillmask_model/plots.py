"""Plots of a training run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fillmask_model.files import atomic_replace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVE_NAME = "curve.png"
# points (x, y) of curves by their label, by the label of their y axis
Panels: TypeAlias = dict[str, dict[str, list[tuple[float, float]]]]


@contextmanager
def new_figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Write the figure that the `with` block draws, with its size in inches."""
    # imported here, because the import takes half a second
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure
    with atomic_replace(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")


def draw_curves(directory: Path, x_label: str, panels: Panels) -> None:
    """Plot curves to curve.png, each in the panel of its y axis."""
    with new_figure(directory / CURVE_NAME, 4.5 * len(panels), 4) as figure:
        (row,) = figure.subplots(1, len(panels), squeeze=False)
        for axes, (y_label, curves) in zip(row, panels.items(), strict=True):
            for label, points in curves.items():
                axes.plot(*zip(*points, strict=True), marker=".", label=label)
            axes.set(xlabel=x_label, ylabel=y_label)
            axes.grid(alpha=0.3)
            axes.legend()
