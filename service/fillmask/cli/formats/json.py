"""JSON arrays of texts and objects, read element by element in bounded memory."""

import codecs
import json
import re
from collections.abc import Iterator, Sequence

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import row_label
from fillmask.cli.formats.jsonl import JsonRows
from fillmask.cli.formats.output import Format
from fillmask.tables.streams import ENCODE, MAX_LINE_BYTES, OpenStream, Stream

_CHUNK_BYTES = 2**18
_BLANK = " \t\r\n"
_MARK = re.compile(rf"[{_BLANK}]*([\[,\]])[{_BLANK}]*")
# Only the ends of elements matter here. The parser of the rows is strict.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class JsonArrayRows(JsonRows):
    """Rows of a JSON array. A text becomes an object with one field."""

    label = "The element"

    def __init__(self, name: str, open_stream: OpenStream, field: str) -> None:
        super().__init__(name, open_stream)
        self._field = json.dumps(field)

    def lines(self, stream: Stream) -> Iterator[Sequence[bytes | None]]:
        for elements in self._read_elements(stream):
            yield [self._line(element) for element in elements]

    def _line(self, element: str) -> bytes:
        # the strings of JSON contain no line ends
        line = element.replace("\n", " ").replace("\r", " ")
        return (f"{{{self._field}:{line}}}" if line.startswith('"') else line).encode()

    def _read_elements(self, stream: Stream) -> Iterator[list[str]]:
        """Yield the elements in lists, each as long as one read of the stream allows.

        Raises:
            CommandError: the file is not an array, or an element is not JSON or too long.
        """
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        text, expected = "", "["  # what is read but not yielded, and the marks that may begin it
        count, at_end = 0, False
        while not at_end:
            # twice the text with each read, so that a long element is scanned a few times only
            content = stream.read(max(_CHUNK_BYTES, len(text))) or b""
            at_end = not content
            try:
                text += decoder.decode(content, final=at_end)
            except UnicodeDecodeError as error:
                raise CommandError(f"{self.name} {ENCODE}.") from error
            elements, text, expected, problem = _take_elements(text, expected)
            if elements:
                yield elements
            count += len(elements)
            first = text.lstrip(_BLANK)[:1]
            if first and first not in expected:
                problem = f"expecting {' or '.join(expected) or 'nothing'} instead of {first}"
            elif not (at_end and expected) and len(text) <= MAX_LINE_BYTES:
                continue
            if expected == "[" and first != "[":
                raise CommandError(
                    f"{self.name} must be a JSON array; name a file with one JSON object per line "
                    ".jsonl."
                )
            long = f", or longer than {MAX_LINE_BYTES} characters" * (not at_end)
            raise CommandError(
                f"{row_label(self.name, count)} is not valid JSON ({problem}){long}; correct it."
            )


def _take_elements(text: str, expected: str) -> tuple[list[str], str, str, str]:
    """Take the complete elements from the start of a text.

    Return them, the rest, the marks that may begin the rest, and what ends the search.
    """
    elements: list[str] = []
    place, problem = 0, "the array has no end"
    while (found := _MARK.match(text, place)) and found[1] in expected:
        start = found.end()
        if found[1] == "]":
            expected, place = "", start
            break
        if expected == "[" and text.startswith("]", start):
            expected, place = "]", start
            continue
        try:
            _, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            problem = error.msg.lower()
            break
        except RecursionError:
            problem = "too many levels"
            break
        if end == len(text):  # a number may go on
            break
        elements.append(text[start:end])
        expected, place = ",]", end
    return elements, text[place:], expected, problem


JSON = Format((".json",), lambda source: JsonArrayRows(source.name, source.open, source.field))
