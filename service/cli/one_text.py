"""One text from the command line, and its fills as a table."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Self, TextIO

from service.api.fill_response import fills_to_json
from service.cli.errors import CommandError
from service.cli.formats.base import is_text
from service.cli.formats.durable_files import STANDARD_OUTPUT, naming
from service.cli.requests import limits_of, read_options, without_limits
from service.cli.row_options import TextTask
from service.registry.loader import load_model
from service.settings import Settings
from service.tasks.results import Fill, TargetFill

_BAR_CELLS = 20
_BLOCKS = "▏▎▍▌▋▊▉█"  # an eighth of a cell up to all of it
_LEAST_TEXT_CELLS = 16
_GAP = "  "
_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Style:
    """What a stream can show.

    Attributes:
        width: in cells; None where lines may have any length.
        escapes: whether it understands escape sequences, and nobody minds.
        encoding: of its text.
    """

    width: int | None = None
    escapes: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO) -> Self:
        """A stream's; of a terminal COLUMNS, NO_COLOR and TERM say more."""
        terminal = stream.isatty()
        minds = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return cls(
            width=shutil.get_terminal_size().columns if terminal else None,
            escapes=terminal and not minds,
            encoding=stream.encoding,
        )

    @property
    def has_blocks(self) -> bool:
        """Whether the encoding knows the characters of finer bars."""
        try:
            _BLOCKS.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def marked(self, text: str, escape: str) -> str:
        """The text in another weight."""
        return f"{escape}{text}{_PLAIN}" if self.escapes else text


def format_table(text: str, masks: Sequence[Sequence[Fill]], style: Style) -> Iterator[str]:
    """The lines to print.

    Args:
        text: with its masks.
        masks: the fills of each, best first; or of all together.
        style: of where they are printed.
    """
    for number, fills in enumerate(masks, 1):
        if number > 1:
            yield ""
        if len(masks) > 1:
            yield style.marked(f"Mask {number}", _DIM)
        if not fills:
            yield "Nothing fits."
            continue
        if window := fills[0].window:
            yield style.marked(f"The model saw characters {window[0]} to {window[1]}.", _DIM)
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
        shown = _extract(sequence, place, room)
        yield f"{head}{_GAP}{style.marked(token, _BOLD)}{padding}{_GAP}{shown}".rstrip()


def _first_difference(text: str, sequence: str) -> int:
    """Where a text is filled."""
    pairs = zip(text, sequence, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(text))


def _number(probability: float) -> str:
    """Seven cells."""
    return (
        f"{probability:7.4f}" if probability >= 5e-5 or not probability else f"{probability:7.1e}"
    )


def _bar(share: float, style: Style) -> str:
    if not style.has_blocks:
        return "#" * round(share * _BAR_CELLS)
    cells, eighths = divmod(round(share * _BAR_CELLS * len(_BLOCKS)), len(_BLOCKS))
    return _BLOCKS[-1] * cells + (_BLOCKS[eighths - 1] if eighths else "")


def _visible(text: str) -> str:
    """The text with a character that shows in place of each that does not, or that moves others."""
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "?"
        for character in text
    )


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    return sum(_cells_of(character) for character in text)


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _extract(text: str, place: int, room: int | None) -> str:
    """As much of a text as there is room for, around a place; nothing where there is too little."""
    if room is None or _cells(text) <= room:
        return text
    if room < _LEAST_TEXT_CELLS:
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


_CALLED = "The text"


async def fill_text(task: TextTask, settings: Settings) -> None:
    """Print the fills of each mask.

    Args:
        task: the text.
        settings: of the model.

    Raises:
        CommandError: the text is none.
        StartupError: the bundle is no good.
        FillMaskError: the text cannot be filled.
    """
    if not task.text:
        raise CommandError(f"{_CALLED} is empty.")
    if not is_text(task.text):
        raise CommandError(f"{_CALLED} is not valid UTF-8.")
    async with aclosing(await load_model(without_limits(settings), lambda _: None)) as model:
        options = read_options(task.parameters, limits_of(model.bundle))
        answer = await model.fill_mask.fill([task.text], options, _CALLED)
    with naming(STANDARD_OUTPUT):
        if task.as_json:
            sys.stdout.buffer.write(fills_to_json(answer, single=True) + b"\n")
            return
        [masks] = answer.fills
        lines = format_table(task.text, masks, Style.of(sys.stdout))
        sys.stdout.writelines(f"{line}\n" for line in lines)
