"""Training log and its plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fillmask_model.pretraining import progress
from fillmask_model.pretraining.progress import MetricsLog, draw_curve
from tests.model.samples import metrics_of


def test_a_resumed_run_replaces_its_steps_and_a_line_cut_short(tmp_path: Path) -> None:
    # Each line is on disk immediately, and earlier ones stay. A kill leaves an incomplete line.
    log = MetricsLog(tmp_path, first_step=1)
    log.append(step=1, tokens=64, loss=1 / 3)
    assert metrics_of(tmp_path) == [{"step": 1, "tokens": 64, "loss": 1 / 3}]
    kept = log.path.read_bytes()
    log.append(step=2, loss=0.2)
    log.path.write_bytes(log.path.read_bytes() + b'{"step": 3, "lo')
    assert [line["step"] for line in log.read()] == [1, 2]
    MetricsLog(tmp_path, first_step=2)
    assert log.path.read_bytes() == kept


def test_a_curve_has_the_figures_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(progress, "draw_curves", lambda *arguments: drawn.append(arguments[2]))
    log = MetricsLog(tmp_path, first_step=1)
    log.append(step=1, tokens=1e6, loss=4.0)
    shares = {f"held_out_{name}": 0.9 for name in ("top_1", "top_5", "next_sentence_accuracy")}
    log.append(step=4, tokens=3e6, held_out_loss=1.0, **shares)
    draw_curve(log)
    [panels] = drawn
    assert panels == {
        "cross-entropy, nats": {"training": [(1, 4)], "held out": [(3, 1)]},
        "held-out accuracy, %": {name: [(3, 90)] for name in ("top 1", "top 5", "next sentence")},
    }
