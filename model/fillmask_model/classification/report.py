"""Files that a fine-tuning run writes beside its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fillmask_model.classification.data.labels import Targets
from fillmask_model.classification.metrics import (
    METRICS,
    compute_metrics,
    confusion_matrix,
    count_labels,
)
from fillmask_model.classification.training import Epoch
from fillmask_model.encoder.classifier import ClassifierConfig, ProblemType
from fillmask_model.files import atomic_replace
from fillmask_model.fine_tuning.history import HISTORY_NAME

METRICS_NAME = "metrics.json"
CURVE_NAME = "curve.png"
CONFUSION_NAME = "confusion.png"
REPORT_NAMES = (HISTORY_NAME, METRICS_NAME, CURVE_NAME, CONFUSION_NAME)
MAX_PLOT_LABELS = 30


def describe_predictions(
    classifier: ClassifierConfig, logits: NDArray[np.float32], targets: Targets
) -> dict[str, Any]:
    """Return the metrics of predictions as an object for metrics.json.

    The result for labels also contains precision, recall and F1 of each label. The result for one
    label per text also contains the confusion matrix.
    """
    problem_type = classifier.problem_type
    described: dict[str, Any] = {
        "rows": len(targets),
        **compute_metrics(problem_type, logits, targets),
    }
    if problem_type != "regression":
        counts = count_labels(problem_type, logits, targets)
        described["labels"] = counts.table(classifier.labels)
    if problem_type == "single_label_classification":
        described["confusion_matrix"] = confusion_matrix(logits, targets).tolist()
    return described


def write_json(path: Path, fields: Mapping[str, Any]) -> None:
    """Replace a JSON file atomically."""
    with atomic_replace(path) as temporary:
        temporary.write_text(
            json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def draw_curve(path: Path, epochs: list[Epoch], problem_type: ProblemType) -> None:
    """Plot the losses and the validation metrics by epoch."""
    # imported here, because the import takes half a second
    from matplotlib.figure import Figure  # noqa: PLC0415

    names = METRICS[problem_type]
    # the metrics of numbers have different units, and the metrics of labels are all shares
    panels = [[name] for name in names] if problem_type == "regression" else [list(names)]
    figure = Figure(figsize=(4.5 * (1 + len(panels)), 4), layout="constrained")
    losses, *others = figure.subplots(1, 1 + len(panels))
    numbers = [epoch.epoch for epoch in epochs]
    losses.plot(numbers, [e.training_loss for e in epochs], marker="o", label="training")
    losses.plot(numbers, [e.validation_loss for e in epochs], marker="o", label="validation")
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
    with atomic_replace(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")


def draw_confusion(path: Path, matrix: list[list[int]], labels: tuple[str, ...]) -> None:
    """Plot a confusion matrix with the number of rows in each cell.

    A matrix of more than 30 labels has no plot, because its numbers are not legible.
    """
    if len(labels) > MAX_PLOT_LABELS:
        return
    from matplotlib.figure import Figure  # noqa: PLC0415 - see draw_curve

    size = 2.5 + 0.7 * len(labels)
    figure = Figure(figsize=(size, size), layout="constrained")
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
    with atomic_replace(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
