"""Progress as a bar on a terminal or as lines in a log."""

import io

import pytest

from fillmask.cli.progress import ProgressLines, show_progress
from tests.service.cli.command_line import Terminal


def test_a_bar_on_a_terminal() -> None:
    # The bar counts the rows of an earlier run and shows the speed and the label.
    stream = Terminal()
    with show_progress(stream, "out.csv", 10, 4) as bar:
        bar.update(6)
    last = stream.getvalue().rstrip("\n").split("\r")[-1]
    assert last.startswith("out.csv: 100%|")
    assert "10/10" in last
    assert "texts/s" in last


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_lines_in_a_log(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    # The speed counts only the rows of this run. Standard output may share the terminal.
    times_s = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: times_s[-1])
    with show_progress(stream, "out.csv", 1000, 400, bar=False) as lines:
        for time_s in (1.0, 29.0, 30.0, 31.0, 60.0):
            times_s.append(time_s)
            lines.update(50)
    assert isinstance(lines, ProgressLines)
    assert stream.getvalue() == (
        "out.csv: 550 of 1000 rows,  5.00 texts/s, 01:30 left\n"
        "out.csv: 650 of 1000 rows,  4.17 texts/s, 01:24 left\n"
    )


def test_lines_without_a_known_end(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("fillmask.cli.progress.LINE_EVERY_S", 0.0)
    with show_progress(stream, "standard input", None) as lines:
        lines.update(5)
    assert stream.getvalue().startswith("standard input: 5 rows, ")
