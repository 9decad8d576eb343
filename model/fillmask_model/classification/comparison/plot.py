"""Plot of accuracy by epoch, for fine-tuning and for training from scratch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fillmask_model.classification.comparison.results import (
    NAMES,
    Method,
    RunResult,
    half_width,
    select_runs,
)
from fillmask_model.files import atomic_replace

COLOURS: dict[Method, str] = {
    "majority": "0.6",
    "bag_of_words": "tab:green",
    "from_scratch": "tab:orange",
    "pretrained": "tab:blue",
}


def draw_comparison(path: Path, results: Sequence[RunResult]) -> None:
    """Plot accuracy by epoch with one panel per number of training rows.

    The curves show means over the seeds. The bands show the 95 % confidence intervals of the means.
    The horizontal lines show the baselines.
    """
    # imported here, because the import takes half a second
    from matplotlib.figure import Figure  # noqa: PLC0415

    sizes = sorted({run.size for run in results})
    figure = Figure(figsize=(3.6 * len(sizes) + 1, 3.8), layout="constrained")
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    curves: tuple[Method, ...] = ("pretrained", "from_scratch")
    lines: tuple[Method, ...] = ("bag_of_words", "majority")
    for axes, size in zip(panels, sizes, strict=True):
        for method in curves:
            accuracies = np.array([r.accuracies for r in select_runs(results, method, size)])
            epochs = np.arange(1, accuracies.shape[1] + 1)
            mean = accuracies.mean(axis=0)
            axes.plot(epochs, mean, color=COLOURS[method], marker=".", label=NAMES[method])
            if len(accuracies) > 1:
                half = half_width(accuracies)
                low, high = np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)
                axes.fill_between(epochs, low, high, color=COLOURS[method], alpha=0.2, linewidth=0)
        for method in lines:
            if runs := select_runs(results, method, size):
                mean = np.mean([run.accuracy for run in runs])
                axes.axhline(mean, color=COLOURS[method], linestyle="--", label=NAMES[method])
        axes.set(title=f"{size:,} training rows", xlabel="epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("validation accuracy")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    with atomic_replace(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
