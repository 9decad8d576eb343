"""JSON arrays of texts and objects. The whole file is in memory, but its rows are parsed later."""

import json
import re
from collections.abc import Iterator, Sequence

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import in_batches, row_label
from fillmask.cli.formats.lines import JsonRows
from fillmask.tables.streams import ENCODE, Stream

_BLANK = " \t\r\n"
_MARK = re.compile(rf"[{_BLANK}]*(.?)[{_BLANK}]*", re.DOTALL)
# Only the ends of elements matter here. The parser of the rows is strict.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class JsonArrayRows(JsonRows):
    """Rows of a JSON array. A text becomes an object with one field."""

    label = "The element"

    def lines(self, stream: Stream) -> Iterator[Sequence[bytes | None]]:
        """Read the elements without their line ends.

        Raises:
            CommandError: the file is not a JSON array in UTF-8.
        """
        try:
            text = (stream.read(-1) or b"").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise CommandError(f"{self.name} {ENCODE}.") from error
        return in_batches(map(self._line, self._elements(text)))

    def _line(self, element: str) -> bytes:
        # the strings of JSON contain no line ends
        line = element.replace("\n", " ").replace("\r", " ")
        return (
            f"{{{json.dumps(self.source.field)}:{line}}}" if line.startswith('"') else line
        ).encode()

    def _elements(self, text: str) -> Iterator[str]:
        if not text.lstrip(_BLANK).startswith("["):
            raise CommandError(
                f"{self.name} must be a JSON array; name a file with one JSON object per line "
                ".jsonl."
            )
        count = 0
        try:
            for element in _split(text):
                yield element
                count += 1
        except (ValueError, RecursionError) as error:
            problem = str(getattr(error, "msg", error)).lower()
            if isinstance(error, RecursionError):
                problem = "too many levels"
            raise CommandError(
                f"{row_label(self.name, count)} is not valid JSON ({problem}); correct it."
            ) from error


def _split(text: str) -> Iterator[str]:
    """Yield the elements of an array.

    Raises:
        ValueError, RecursionError: the array is invalid after these elements.
    """
    mark, place = _read_mark(text, 0)
    if text.startswith("]", place):
        mark, place = _read_mark(text, place)
    while mark in {"[", ","}:
        _, end = _DECODER.raw_decode(text, place)
        yield text[place:end]
        mark, place = _read_mark(text, end)
    if mark != "]":
        raise ValueError(f"expecting , or ] instead of {mark}" if mark else "the array has no end")
    if place < len(text):
        raise ValueError(f"expecting nothing instead of {text[place]}")


def _read_mark(text: str, place: int) -> tuple[str, int]:
    """Return the next character that is not blank, and where the text goes on after it."""
    found = _MARK.match(text, place)
    assert found is not None  # noqa: S101 - the pattern matches every text
    return found[1], found.end()
