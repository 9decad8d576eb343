"""Progress as a bar on a terminal or as a line every 30 seconds in a log."""

import sys
import time
from types import TracebackType
from typing import Protocol, Self, TextIO

from tqdm import tqdm

LINE_EVERY_S = 30.0
_UNIT = " texts"
_LINE = "{desc}: {n_fmt} of {total_fmt} rows, {rate_noinv_fmt}, {remaining} left"
_LINE_WITHOUT_END = "{desc}: {n_fmt} rows, {rate_noinv_fmt}"


class Progress(Protocol):
    """Progress display in the form of a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def update(self, rows: int) -> object:
        """Add completed rows."""


class ProgressLines:
    """Progress as lines of text.

    Args:
        label: start of each line, such as a file's name.
        total: total number of rows, or None for an unknown number.
        done: number of rows that an earlier run completed.
        every_s: minimum number of seconds between two lines.
    """

    def __init__(
        self,
        stream: TextIO,
        label: str,
        total: int | None,
        done: int = 0,
        every_s: float = LINE_EVERY_S,
    ) -> None:
        self._stream = stream
        self._label = label
        self._total = total
        self._before = self._done = done
        self._every_s = every_s
        self._begun_s = self._shown_s = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return

    def update(self, rows: int) -> None:
        """Add completed rows. Write a line if the last line is at least `every_s` seconds old."""
        self._done += rows
        now_s = time.monotonic()
        if now_s - self._shown_s < self._every_s:
            return
        self._shown_s = now_s
        line = tqdm.format_meter(
            self._done,
            self._total or 0,
            now_s - self._begun_s,
            initial=self._before,
            prefix=self._label,
            unit=_UNIT,
            bar_format=_LINE if self._total else _LINE_WITHOUT_END,
        )
        self._stream.write(f"{line}\n")
        self._stream.flush()


def show_progress(
    stream: TextIO, label: str, total: int | None, done: int = 0, *, bar: bool = True
) -> Progress:
    """Return a progress bar for a terminal, or progress lines for any other stream.

    Args:
        label: start of the bar or of each line.
        total: total number of rows, or None for an unknown number.
        done: number of rows that an earlier run completed.
        bar: allow a bar. Commands that print other lines to the same terminal pass False.
    """
    if bar and stream.isatty():
        return tqdm(
            desc=label, total=total, initial=done, unit=_UNIT, file=stream, dynamic_ncols=True
        )
    return ProgressLines(stream, label, total, done)


def print_status(message: str) -> None:
    """Print a message to standard error, because standard output may contain the result."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
