"""Progress of an export on a terminal and in a log."""

from __future__ import annotations

import io
from contextlib import closing

import pytest

from fillmask_export.progress import (
    COMPARISON,
    PREDICTION,
    ROUNDING,
    SMOOTHING,
    ExportProgress,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def report_all(progress: ExportProgress) -> None:
    for stage in (PREDICTION, SMOOTHING, ROUNDING, COMPARISON):
        for step in range(5):
            progress.report(stage, step / 5, f"blocks.{step}.query")
    progress.report(COMPARISON, 1.0, "")


def test_a_log_gets_a_line_per_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with closing(ExportProgress(stream)) as progress:
        report_all(progress)
    lines = stream.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"{stage} blocks.0.query" for stage in (PREDICTION, SMOOTHING, ROUNDING, COMPARISON)
    ]
    assert all(line.endswith(" left") for line in lines)
    monkeypatch.setattr("fillmask_export.progress._LINE_EVERY_S", 0)
    stream = io.StringIO()
    with closing(ExportProgress(stream)) as progress:
        report_all(progress)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 21
    assert " 100 %" in lines[-1]


def test_a_terminal_gets_a_bar_that_ends_at_100_percent() -> None:
    stream = Terminal()
    with closing(ExportProgress(stream)) as progress:
        report_all(progress)
    assert "100 %" in stream.getvalue().split("\r")[-1]
    assert COMPARISON in stream.getvalue()
