"""Progress of an export on a terminal and in a log."""

from __future__ import annotations

import sys

import pytest

from fillmask_export.progress import stage


@pytest.mark.parametrize("terminal", [False, True])
def test_a_stage_is_a_bar_or_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with stage("smoothing", 3) as bar:
        for _ in range(3):
            bar.update()
    printed = capsys.readouterr().err
    if terminal:
        assert "smoothing" in printed
        assert "100 %" in printed.split("\r")[-1]
    else:
        assert printed == "smoothing\n"
