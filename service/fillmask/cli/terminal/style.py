"""Text styles of a terminal, with bars and numbers."""

import os
import shutil
from dataclasses import dataclass
from typing import Self, TextIO

BAR_CELLS = 20
GAP = "  "
DIM, BOLD = "\x1b[2m", "\x1b[1m"
_PLAIN = "\x1b[0m"
_BLOCKS = "▏▎▍▌▋▊▉█"  # blocks that fill one to eight eighths of a cell


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


def format_number(probability: float) -> str:
    """Format a probability in seven characters."""
    return (
        f"{probability:7.4f}" if probability >= 5e-5 or not probability else f"{probability:7.1e}"
    )


def format_bar(share: float, style: Style) -> str:
    """Return a bar for a share from 0 to 1, of blocks or, if the encoding lacks them, of `#`."""
    full, eighths = divmod(round(share * BAR_CELLS * len(_BLOCKS)), len(_BLOCKS))
    bar = _BLOCKS[-1] * full + (_BLOCKS[eighths - 1] if eighths else "")
    try:
        bar.encode(style.encoding)
    except UnicodeEncodeError:
        bar = "#" * round(share * BAR_CELLS)
    return bar.ljust(BAR_CELLS)


def visible(text: str) -> str:
    """Replace each unprintable character with a space or a question mark."""
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "?"
        for character in text
    )
