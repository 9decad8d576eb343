"""How far a job is: a bar on a terminal, a line from time to time in a log."""

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
    """Counts rows and shows it; to be used in a `with`."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def update(self, rows: int) -> object:
        """So many rows more are done."""


class ProgressLines:
    """A line from time to time.

    Args:
        stream: where to.
        label: what is worked on.
        total: rows in all, where that is known.
        done: rows of an earlier run.
        every_s: seconds from line to line.
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
        """So many rows more are done; shown if it is time."""
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
    """A bar where the stream is a terminal, or else lines.

    Args:
        stream: where to.
        label: what is worked on.
        total: rows in all, where that is known.
        done: rows of an earlier run.
        bar: whether there may be one; not where other lines are printed to the same terminal.
    """
    if bar and stream.isatty():
        return tqdm(
            desc=label, total=total, initial=done, unit=_UNIT, file=stream, dynamic_ncols=True
        )
    return ProgressLines(stream, label, total, done)


def print_status(sentence: str) -> None:
    """Tell the person who started the command; not where its output goes."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
