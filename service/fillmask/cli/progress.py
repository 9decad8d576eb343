"""Progress as a bar on a terminal or as a line every 30 seconds in a log."""

import sys
from typing import NoReturn, TextIO, TypeAlias

from tqdm import tqdm

LINE_EVERY_S = 30.0
Progress: TypeAlias = "tqdm[NoReturn]"

_UNIT = " texts"
_LINE = "{desc}: {n_fmt} of {total_fmt} rows, {rate_noinv_fmt}, {remaining} left"
_LINE_WITHOUT_END = "{desc}: {n_fmt} rows, {rate_noinv_fmt}"


class ProgressLines(tqdm):  # type: ignore[type-arg]
    """Progress as a line of text every 30 seconds."""

    def display(self, msg: str | None = None, pos: int | None = None) -> None:  # noqa: ARG002 - of tqdm
        """Write a line, but none before the first rows."""
        if self.n > self.initial:
            self.fp.write(f"{self}\n")
            self.fp.flush()

    def close(self) -> None:
        """Write no last line, because the command writes one."""
        self.disable = True


def show_progress(
    stream: TextIO, label: str, total: int | None, done: int = 0, *, bar: bool = True
) -> Progress:
    """Return a progress bar for a terminal, or progress lines for any other stream.

    Args:
        done: number of rows that an earlier run completed.
        bar: allow a bar. Commands that print other lines to the same terminal pass False.
    """
    if bar and stream.isatty():
        return tqdm(
            desc=label, total=total, initial=done, unit=_UNIT, file=stream, dynamic_ncols=True
        )
    return ProgressLines(
        desc=label,
        total=total,
        initial=done,
        unit=_UNIT,
        file=stream,
        bar_format=_LINE if total else _LINE_WITHOUT_END,
        mininterval=LINE_EVERY_S,
        miniters=1,
        smoothing=0,
    )


def print_status(message: str) -> None:
    """Print a message to standard error, because standard output may contain the result."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
