"""Plots of a run, and its best epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from fillmask_model.fine_tuning.loop import Epoch
from fillmask_model.fine_tuning.metrics import METRICS
from fillmask_model.fine_tuning.report import best_epoch, draw_confusion, draw_curve
from tests.model.fine_tuning.samples import SINGLE


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Figures that matplotlib saves during the test."""
    saved: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: saved.append(self))
    return saved


@pytest.mark.parametrize(
    ("problem_type", "panels"),
    [
        (SINGLE, [{"training", "validation"}, {"accuracy", "macro f1"}]),
        ("regression", [{"training", "validation"}, {"mean squared error"}, {"spearman"}]),
    ],
)
def test_a_curve_shows_losses_and_metrics(
    problem_type: Any, panels: list[set[str]], figures: list[Figure], tmp_path: Path
) -> None:
    metrics = dict.fromkeys(METRICS[problem_type], 0.5)
    epochs = [Epoch(n, 10 * n, 1 / n, metrics | {"loss": 2 / n}) for n in (1, 2, 3)]
    draw_curve(tmp_path, epochs, problem_type)
    (figure,) = figures
    assert [{line.get_label() for line in axes.lines} for axes in figure.axes] == panels
    training, validation = (np.array(line.get_xydata()) for line in figure.axes[0].lines)
    np.testing.assert_allclose(training, [(1, 1), (2, 1 / 2), (3, 1 / 3)])
    np.testing.assert_allclose(validation, [(1, 2), (2, 1), (3, 2 / 3)])


def test_a_confusion_matrix_shows_its_numbers(figures: list[Figure], tmp_path: Path) -> None:
    draw_confusion(tmp_path, [[1234, 0], [7, 0]], ("a", "b"))
    (axes,) = figures[0].axes
    assert [text.get_text() for text in axes.texts] == ["1,234", "0", "7", "0"]
    draw_confusion(tmp_path, np.eye(31, dtype=int).tolist(), tuple(map(str, range(31))))
    assert len(figures) == 1  # 31 labels are not legible


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("accuracy", 3), ("macro_f1", 1), ("mean_squared_error", 4)],
)
def test_the_best_epoch(metric: str, expected: int) -> None:
    scores = [(0.5, 1.0), (0.8, 0.9), (0.8, 0.7), (0.7, 0.1)]
    epochs = [
        Epoch(n, n, 0, {"loss": b, "accuracy": a, "macro_f1": 1 - a, "mean_squared_error": b})
        for n, (a, b) in enumerate(scores, 1)
    ]
    assert best_epoch(epochs, metric).epoch == expected
    assert best_epoch([epochs[1]] * 2, metric) is epochs[1]
