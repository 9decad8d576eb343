"""Files about the epochs of a classifier: metrics.json and plots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.files import atomic_replace
from fillmask_model.fine_tuning.classification import Classification, LabelledTexts, predict
from fillmask_model.fine_tuning.loop import HISTORY_NAME, Epoch
from fillmask_model.fine_tuning.metrics import LOWER_IS_BETTER, METRICS, describe_predictions
from fillmask_model.plots import CURVE_NAME, Panels, draw_curves, new_figure

METRICS_NAME = "metrics.json"
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
        "problem_type": objective.problem_type,
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


def summary(metrics: dict[str, Any], directory: Path) -> str:
    """Return the figures of metrics.json as lines for the terminal."""
    lines = [f"best epoch {metrics['best_epoch']} of {metrics['epochs']}: {directory}"]
    for name in ("validation", "test"):
        if part := metrics.get(name):
            figures = []
            for metric in METRICS[metrics["problem_type"]]:
                interval = ""
                if "intervals" in part:
                    low, high = part["intervals"][metric]
                    interval = f" (95 % confidence interval {low:.4f} to {high:.4f})"
                figures.append(f"{metric} {part[metric]:.4f}{interval}")
            lines.append(f"{name}, {part['rows']:,} rows: {', '.join(figures)}")
    return "\n".join(lines)


def draw_curve(directory: Path, epochs: Sequence[Epoch], problem_type: str) -> None:
    """Plot the losses and the validation metrics by epoch to curve.png."""

    def curve(name: str) -> list[tuple[float, float]]:
        return [(epoch.epoch, epoch.metrics[name]) for epoch in epochs]

    training: list[tuple[float, float]] = [(epoch.epoch, epoch.training_loss) for epoch in epochs]
    panels: Panels = {"loss": {"training": training, "validation": curve("loss")}}
    for name in METRICS[problem_type]:
        label = name.replace("_", " ")
        # the metrics of numbers have different units, and the metrics of labels are all shares
        panel = label if problem_type == "regression" else "share"
        panels.setdefault(f"validation, {panel}", {})[label] = curve(name)
    draw_curves(directory, "epoch", panels)


def draw_confusion(directory: Path, matrix: list[list[int]], labels: tuple[str, ...]) -> None:
    """Plot a confusion matrix with the number of rows in each cell to confusion.png.

    A matrix of more than 30 labels has no plot, because its numbers are not legible.
    """
    if len(labels) > MAX_PLOT_LABELS:
        return
    size = 2.5 + 0.7 * len(labels)
    with new_figure(directory / CONFUSION_NAME, size, size) as figure:
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
