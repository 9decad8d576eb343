"""Lines of a table for a terminal: styles, numbers, bars and shortened texts."""

import os
import shutil
from dataclasses import dataclass
from typing import Self, TextIO

from tqdm.utils import disp_len, disp_trim

GAP = "  "
DIM, BOLD = "\x1b[2m", "\x1b[1m"
_PLAIN = "\x1b[0m"
_BAR_CELLS = 20
_BLOCKS = "▏▎▍▌▋▊▉█"  # blocks that fill one to eight eighths of a cell
_MIN_TEXT_CELLS, _DOTS = 16, "..."


@dataclass(frozen=True, slots=True)
class Style:
    """Text style that a stream supports."""

    width: int | None = None  # of a line, in terminal cells. None allows any length
    escapes: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO) -> Self:
        """Return the style of a stream.

        For a terminal, the style depends on the variables COLUMNS, NO_COLOR and TERM.
        """
        terminal = stream.isatty()
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return cls(
            width=shutil.get_terminal_size().columns if terminal else None,
            escapes=terminal and not plain,
            encoding=stream.encoding,
        )

    def apply(self, escape: str, text: str) -> str:
        return f"{escape}{text}{_PLAIN}" if self.escapes else text

    def line(self, number: str, share: float | None, name: str) -> str:
        """Return a line with a bar for a share from 0 to 1, or without a bar."""
        bars = [] if share is None else [self._bar(share)]
        return GAP.join([number, *bars, self.apply(BOLD, visible(name))])

    def _bar(self, share: float) -> str:
        """Return a bar of blocks or, if the encoding lacks them, of `#`."""
        full, eighths = divmod(round(share * _BAR_CELLS * len(_BLOCKS)), len(_BLOCKS))
        bar = _BLOCKS[-1] * full + (_BLOCKS[eighths - 1] if eighths else "")
        try:
            bar.encode(self.encoding)
        except UnicodeEncodeError:
            bar = "#" * round(share * _BAR_CELLS)
        return bar.ljust(_BAR_CELLS)


def format_number(probability: float) -> str:
    """Format a probability in seven characters."""
    return (
        f"{probability:7.4f}" if probability >= 5e-5 or not probability else f"{probability:7.1e}"
    )


def visible(text: str) -> str:
    """Replace each unprintable character with a space or a question mark."""
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "?"
        for character in text
    )


def shorten(text: str, place: int, room: int | None) -> str:
    """Shorten a text to `room` cells around an index, or to nothing if `room` is too small."""
    if room is None or disp_len(text) <= room:
        return text
    if room < _MIN_TEXT_CELLS:
        return ""
    start = max(0, place - room // 3)
    shown = _DOTS * bool(start) + text[start : start + room]
    return disp_trim(shown, room - len(_DOTS)) + _DOTS * (disp_len(shown) > room - len(_DOTS))
