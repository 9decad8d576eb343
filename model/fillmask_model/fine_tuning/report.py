"""Files about the epochs of a classifier: metrics.json and plots."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.encoder.classifier import ProblemType
from fillmask_model.files import atomic_replace
from fillmask_model.fine_tuning.classification import Classification, LabelledTexts, predict
from fillmask_model.fine_tuning.loop import HISTORY_NAME, Epoch
from fillmask_model.fine_tuning.metrics import LOWER_IS_BETTER, METRICS, describe_predictions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRICS_NAME = "metrics.json"
CURVE_NAME = "curve.png"
CONFUSION_NAME = "confusion.png"
REPORT_NAMES = (HISTORY_NAME, METRICS_NAME, CURVE_NAME, CONFUSION_NAME)
MAX_PLOT_LABELS = 30


def best_epoch(epochs: Sequence[Epoch], metric: str) -> Epoch:
    """Return the first epoch with the best value of a metric.

    Between epochs with the same value, the epoch with the lower validation loss is better.
    """
    sign = -1 if metric in LOWER_IS_BETTER else 1
    return max(epochs, key=lambda one: (sign * one.metrics[metric], -one.metrics["loss"]))


def write_metrics(
    directory: Path,
    objective: Classification,
    epochs: Sequence[Epoch],
    metric: str,
    test: LabelledTexts | None,
) -> dict[str, Any]:
    """Write and return metrics.json with the results of the saved checkpoint, in float32."""
    model = load_checkpoint(directory).model.to(objective.device)
    head = objective.head
    metrics: dict[str, Any] = {
        "problem_type": head.problem_type,
        "best_epoch": best_epoch(epochs, metric).epoch,
        "best_by": metric,
        "epochs": len(epochs),
        "training_rows": len(objective.training.texts),
    }
    for name, rows in (("validation", objective.validation), ("test", test)):
        if rows is None:
            continue
        logits = predict(model, rows.texts)
        metrics[name] = describe_predictions(head, logits, rows.targets, intervals=name == "test")
        if matrix := metrics[name].get("confusion_matrix"):
            # the plot of the test rows replaces the plot of the validation rows
            draw_confusion(directory, matrix, head.labels)
    with atomic_replace(directory / METRICS_NAME) as temporary:
        text = json.dumps(metrics, indent=2, ensure_ascii=False)
        temporary.write_text(f"{text}\n", encoding="utf-8")
    return metrics


def draw_curve(directory: Path, epochs: Sequence[Epoch], problem_type: ProblemType) -> None:
    """Plot the losses and the validation metrics by epoch to curve.png."""
    names = METRICS[problem_type]
    # the metrics of numbers have different units, and the metrics of labels are all shares
    panels = [[name] for name in names] if problem_type == "regression" else [list(names)]
    with _figure(directory / CURVE_NAME, 4.5 * (1 + len(panels)), 4) as figure:
        losses, *others = figure.subplots(1, 1 + len(panels))
        numbers = [epoch.epoch for epoch in epochs]
        losses.plot(numbers, [e.training_loss for e in epochs], marker="o", label="training")
        losses.plot(numbers, [e.metrics["loss"] for e in epochs], marker="o", label="validation")
        losses.set(xlabel="epoch", ylabel="loss")
        for axes, panel in zip(others, panels, strict=True):
            for name in panel:
                values = [epoch.metrics[name] for epoch in epochs]
                axes.plot(numbers, values, marker="o", label=name.replace("_", " "))
            axes.set(xlabel="epoch", ylabel="validation metric")
        for axes in (losses, *others):
            axes.grid(alpha=0.3)
            axes.legend()
            axes.xaxis.get_major_locator().set_params(integer=True)


def draw_confusion(directory: Path, matrix: list[list[int]], labels: tuple[str, ...]) -> None:
    """Plot a confusion matrix with the number of rows in each cell to confusion.png.

    A matrix of more than 30 labels has no plot, because its numbers are not legible.
    """
    if len(labels) > MAX_PLOT_LABELS:
        return
    size = 2.5 + 0.7 * len(labels)
    with _figure(directory / CONFUSION_NAME, size, size) as figure:
        axes = figure.subplots()
        rows = np.maximum(np.sum(matrix, axis=1, keepdims=True), 1)
        shares = np.array(matrix) / rows
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for row, counts in enumerate(matrix):
            for column, count in enumerate(counts):
                colour = "white" if shares[row, column] > 0.5 else "black"
                axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour)
        ticks = range(len(labels))
        axes.set_xticks(ticks, labels, rotation=45, ha="right")
        axes.set_yticks(ticks, labels)
        axes.set(xlabel="predicted label", ylabel="true label")


@contextmanager
def _figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Write the figure that the `with` block draws, with its size in inches."""
    # imported here, because the import takes half a second
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure
    with atomic_replace(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
