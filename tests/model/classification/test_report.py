"""Plots and descriptions of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from fillmask_model.classification.metrics import METRICS
from fillmask_model.classification.report import describe_predictions, draw_confusion, draw_curve
from fillmask_model.classification.training import Epoch
from fillmask_model.encoder.classifier import ClassifierConfig
from tests.model.classification.samples import MULTI, SINGLE


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Figures that matplotlib saves during the test."""
    saved: list[Figure] = []
    save = Figure.savefig

    def keep(self: Figure, *arguments: Any, **options: Any) -> None:
        saved.append(self)
        save(self, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    return saved


@pytest.mark.parametrize(
    ("problem_type", "panels"),
    [
        (SINGLE, [{"training", "validation"}, {"accuracy", "macro f1"}]),
        (MULTI, [{"training", "validation"}, {"accuracy", "macro f1", "micro f1"}]),
        ("regression", [{"training", "validation"}, {"mean squared error"}, {"spearman"}]),
    ],
)
def test_a_curve_shows_losses_and_metrics(
    problem_type: Any, panels: list[set[str]], figures: list[Figure], tmp_path: Path
) -> None:
    metrics = dict.fromkeys(METRICS[problem_type], 0.5)
    epochs = [Epoch(n, 10 * n, 1 / n, 2 / n, metrics) for n in (1, 2, 3)]
    draw_curve(tmp_path / "curve.png", epochs, problem_type)
    (figure,) = figures
    assert [{line.get_label() for line in axes.lines} for axes in figure.axes] == panels
    (training, validation) = figure.axes[0].lines
    assert np.asarray(training.get_xdata()).tolist() == [1, 2, 3]
    assert np.asarray(validation.get_ydata()).tolist() == pytest.approx([2, 1, 2 / 3])
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_confusion_matrix_shows_its_numbers(figures: list[Figure], tmp_path: Path) -> None:
    draw_confusion(tmp_path / "small.png", [[1234, 0], [7, 0]], ("a", "b"))
    (axes,) = figures[0].axes
    assert [text.get_text() for text in axes.texts] == ["1,234", "0", "7", "0"]
    many = tuple(map(str, range(31)))
    draw_confusion(tmp_path / "large.png", np.eye(31, dtype=int).tolist(), many)
    assert not (tmp_path / "large.png").exists()


def test_descriptions_of_each_problem_type() -> None:
    logits, labels = np.array([[2, 1], [0, 1], [3, 1]], np.float32), ("a", "b")
    single = describe_predictions(ClassifierConfig(labels=labels), logits, np.array([0, 1, 1]))
    assert set(single) == {"rows", "accuracy", "macro_f1", "labels", "confusion_matrix"}
    assert single["confusion_matrix"] == [[1, 0], [1, 1]]
    several = describe_predictions(
        ClassifierConfig(labels=labels, problem_type=MULTI), logits, np.ones((3, 2), np.float32)
    )
    assert set(several) == {"rows", "accuracy", "macro_f1", "micro_f1", "labels"}
    numbers = describe_predictions(
        ClassifierConfig(labels=("n",), problem_type="regression"), logits[:, :1], np.ones(3)
    )
    assert set(numbers) == {"rows", "mean_squared_error", "spearman"}
