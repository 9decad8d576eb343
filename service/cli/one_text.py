"""The text command, which fills one text and prints a table or JSON."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Self, TextIO

from service.api.bodies.fill_response import fills_to_json
from service.cli.commands import TextCommand
from service.cli.errors import CommandError
from service.cli.formats.base import is_encodable
from service.cli.formats.durable_files import STANDARD_OUTPUT, name_in_errors
from service.cli.requests import limits_of, read_options, without_limits
from service.registry.loader import load_model
from service.settings import Settings
from service.tasks.results import Fill, TargetFill

_BAR_CELLS = 20
_BLOCKS = "▏▎▍▌▋▊▉█"  # blocks that fill one to eight eighths of a cell
_MIN_TEXT_CELLS = 16
_GAP = "  "
_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Style:
    """Text style that a stream supports.

    Attributes:
        width: width of a line, in terminal cells. None allows lines of any length.
        escapes: true if the output may contain escape sequences.
        encoding: character encoding of the stream.
    """

    width: int | None = None
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

    @property
    def has_blocks(self) -> bool:
        """True if the encoding contains the block characters for fine bars."""
        try:
            _BLOCKS.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def apply(self, escape: str, text: str) -> str:
        """Surround a text with an escape sequence and a reset if the stream supports escapes."""
        return f"{escape}{text}{_PLAIN}" if self.escapes else text


def format_table(text: str, masks: Sequence[Sequence[Fill]], style: Style) -> Iterator[str]:
    """Format fills as the lines of a table.

    Args:
        text: the text with its masks.
        masks: fills of each mask, best first. Joint fills form a single list.
        style: style of the output stream.
    """
    for number, fills in enumerate(masks, 1):
        if number > 1:
            yield ""
        if len(masks) > 1:
            yield style.apply(_DIM, f"Mask {number}")
        if not fills:
            yield "No fills."
            continue
        if window := fills[0].window:
            yield style.apply(
                _DIM, f"The model read characters {window[0]} to {window[1]} of the text."
            )
        yield from _lines(text, fills, style)


def _lines(text: str, fills: Sequence[Fill], style: Style) -> Iterator[str]:
    tokens = [_visible(fill.token_str) for fill in fills]
    sequences = [_visible(fill.sequence) for fill in fills]
    place = _first_difference(text, fills[0].sequence)
    token_cells = max(map(_cells, tokens))
    for fill, token, sequence in zip(fills, tokens, sequences, strict=True):
        numbers = [_number(fill.score)]
        share = fill.score
        if isinstance(fill, TargetFill):
            share = fill.target_score
            numbers.append(_number(share))
        bar = _bar(share, style)
        head = _GAP.join([*numbers, bar.ljust(_BAR_CELLS)])
        padding = " " * (token_cells - _cells(token))
        room = None
        if style.width is not None:
            room = style.width - len(head) - token_cells - 2 * len(_GAP)
        shown = _shorten(sequence, place, room)
        yield f"{head}{_GAP}{style.apply(_BOLD, token)}{padding}{_GAP}{shown}".rstrip()


def _first_difference(text: str, sequence: str) -> int:
    """Return the index of the first character that differs between two texts."""
    pairs = zip(text, sequence, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(text))


def _number(probability: float) -> str:
    """Format a probability in seven characters."""
    return (
        f"{probability:7.4f}" if probability >= 5e-5 or not probability else f"{probability:7.1e}"
    )


def _bar(share: float, style: Style) -> str:
    if not style.has_blocks:
        return "#" * round(share * _BAR_CELLS)
    cells, eighths = divmod(round(share * _BAR_CELLS * len(_BLOCKS)), len(_BLOCKS))
    return _BLOCKS[-1] * cells + (_BLOCKS[eighths - 1] if eighths else "")


def _visible(text: str) -> str:
    """Replace each unprintable character with a space or a question mark."""
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "?"
        for character in text
    )


def _cells(text: str) -> int:
    """Return the width of a text in terminal cells."""
    return sum(_cells_of(character) for character in text)


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shorten(text: str, place: int, room: int | None) -> str:
    """Shorten a text to `room` cells around an index, or to nothing if `room` is too small."""
    if room is None or _cells(text) <= room:
        return text
    if room < _MIN_TEXT_CELLS:
        return ""
    dots = "..."
    start = max(0, place - room // 3)
    shown = dots if start else ""
    used = len(shown)
    for character in text[start:]:
        used += _cells_of(character)
        if used > room - len(dots):
            return shown + dots
        shown += character
    return shown


_LABEL = "The text"


async def fill_text(command: TextCommand, settings: Settings) -> None:
    """Fill a text and print the fills of each mask.

    Raises:
        CommandError: the text is empty or not valid UTF-8.
        StartupError: the bundle or a setting is invalid.
        FillMaskError: the text or a parameter is invalid, or the model has failed.
    """
    if not command.text:
        raise CommandError(f"{_LABEL} is empty; it must have at least one mask.")
    if not is_encodable(command.text):
        raise CommandError(f"{_LABEL} is not valid UTF-8; encode it as UTF-8.")
    async with aclosing(await load_model(without_limits(settings), lambda _: None)) as model:
        options = read_options(command.parameters, limits_of(model.bundle))
        result = await model.require_fill_mask().fill([command.text], options, _LABEL)
    with name_in_errors(STANDARD_OUTPUT):
        if command.as_json:
            sys.stdout.buffer.write(fills_to_json(result, single=True) + b"\n")
            return
        [masks] = result.fills
        lines = format_table(command.text, masks, Style.of(sys.stdout))
        sys.stdout.writelines(f"{line}\n" for line in lines)
