"""Training log and its plot."""

from __future__ import annotations

import struct
from pathlib import Path

from fillmask_model.pretraining.progress import MetricsLog, draw_curve
from tests.model.samples import metrics_of


def test_figures_are_appended_one_object_a_line(tmp_path: Path) -> None:
    # Each line is on disk immediately.
    log = MetricsLog(tmp_path, first_step=1)
    log.append(step=1, tokens=64, loss=1 / 3)
    assert metrics_of(tmp_path) == [{"step": 1, "tokens": 64, "loss": 1 / 3}]
    log.append(step=2, tokens=128, held_out_loss=0.1)
    assert metrics_of(tmp_path) == log.read()
    assert [line["step"] for line in log.read()] == [1, 2]


def test_a_resumed_run_replaces_its_steps(tmp_path: Path) -> None:
    # The lines of earlier steps do not change.
    log = MetricsLog(tmp_path, first_step=1)
    log.append(step=1, loss=0.1)
    kept = log.path.read_bytes()
    log.append(step=2, loss=0.2)
    log.append(step=3, loss=0.3)
    MetricsLog(tmp_path, first_step=2)
    assert log.path.read_bytes() == kept


def test_a_line_cut_short_is_dropped(tmp_path: Path) -> None:
    # A kill during an append leaves an incomplete line.
    log = MetricsLog(tmp_path, first_step=1)
    log.append(step=1, loss=0.1)
    kept = log.path.read_bytes()
    log.path.write_bytes(kept + b'{"step": 2, "lo')
    assert [line["step"] for line in log.read()] == [1]
    MetricsLog(tmp_path, first_step=2)
    assert log.path.read_bytes() == kept


def test_the_curve_is_a_picture(tmp_path: Path) -> None:
    # Later lines may have held-out figures and next-sentence accuracy.
    log = MetricsLog(tmp_path, first_step=1)
    log.append(step=1, tokens=64, loss=4.0)
    draw_curve(log)
    without = (tmp_path / "curve.png").read_bytes()
    shares = {f"held_out_{name}": 0.9 for name in ("top_1", "top_5", "next_sentence_accuracy")}
    log.append(step=4, tokens=256, held_out_loss=1.0, **shares)
    draw_curve(log)
    picture = (tmp_path / "curve.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert picture.endswith(b"IEND\xaeB`\x82")
    assert struct.unpack(">II", picture[16:24]) == (1080, 480)
    assert picture != without
