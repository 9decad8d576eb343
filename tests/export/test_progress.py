"""Progress of an export on a terminal and in a log."""

from __future__ import annotations

import io
import re
from contextlib import closing

import pytest

from fillmask_export.progress import (
    COMPARISON,
    PREDICTION,
    ROUNDING,
    SMOOTHING,
    DownloadProgress,
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


def test_a_download_shows_its_size_and_share() -> None:
    stream, log, nothing = Terminal(), io.StringIO(), io.StringIO()
    for progress in (DownloadProgress(stream, 2_500_000), DownloadProgress(log, 2_500_000)):
        with closing(progress):
            for count_bytes in (0, 2_000_000, -500_000, 1_000_000):
                progress.add(count_bytes)
    assert re.findall(r"download of 2\.5 MB *(\d+) %", stream.getvalue())[-1] == "100"
    assert log.getvalue().startswith("download of 2.5 MB: 0 %, 00:00, ")
    assert log.getvalue().count("\n") == 1
    with closing(DownloadProgress(nothing, 0)) as progress:
        progress.add(10)
    assert nothing.getvalue() == ""
