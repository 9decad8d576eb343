"""Lines of a table for csv.reader, which can go on after a malformed record."""

import csv
import re
from collections import deque
from itertools import chain, islice
from typing import Self

from fillmask.tables.streams import MAX_LINE_BYTES, Stream, read_lines

BACKSLASH = r"set --quoting backslash if \" stands for a quotation mark"


class RecordLines:
    """Lines of a file for a csv.reader, which can go back to the second line of a record."""

    def __init__(self, stream: Stream, skipped: int, *, backslash: bool) -> None:
        self._lines = islice(chain.from_iterable(read_lines(stream)), skipped, None)
        self._backslash = backslash
        self._returned: deque[bytes | None] = deque()
        self._record: list[bytes | None] = []
        self._bytes = 0
        self._at_end = False
        self.first = skipped + 1

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        self._at_end = False
        try:
            line = self._returned.popleft() if self._returned else next(self._lines)
        except StopIteration:
            self._at_end = True
            raise
        self._record.append(line)
        self._bytes += MAX_LINE_BYTES + 1 if line is None else len(line)
        if line is None or self._bytes > MAX_LINE_BYTES:
            raise csv.Error
        text = line.decode(errors="surrogateescape")
        # For csv.reader every backslash is an escape. Here one before another character is text.
        return re.sub(r'\\(["\\]?)', _escape, text) if self._backslash else text

    def begin_record(self) -> None:
        self.first += len(self._record)
        self._record, self._bytes = [], 0

    def rewind(self) -> None:
        """Begin a record after the first line of this one."""
        self._returned.extendleft(reversed(self._record[1:]))
        self._record = self._record[:1]
        self.begin_record()

    def complete_cells(self, delimiter: str) -> list[str]:
        """Return the cells of the record's first line before the first malformed one."""
        line = (self._record[0] or b"").decode(errors="surrogateescape")
        end = re.escape(delimiter)
        cell = rf'(?:"[^"]*(?:""[^"]*)*"|[^"\r\n{end}]*){end}'
        found = re.match(rf"(?:{cell})*", line)
        return next(csv.reader([found[0] if found else ""], delimiter=delimiter), [""])[:-1]

    def describe(self, error: csv.Error, quoting: str) -> str:
        cure = "correct it, or set --quoting none if quotation marks are text"
        fault = f"a cell in quotation marks with text after its end; {cure}"
        if self._bytes > MAX_LINE_BYTES:
            fault = f"more than {MAX_LINE_BYTES} bytes; shorten it, or close its quotation mark"
        elif quoting == "csv" and any(b'\\"' in (line or b"") for line in self._record):
            fault = rf"\" inside a cell; {BACKSLASH}"
        elif str(error).startswith("new-line"):
            fault = (
                "a carriage return outside quotation marks; quote its cell, or convert line ends"
            )
        elif self._at_end:
            fault = f"a cell in quotation marks that never ends; {cure}"
        return f"begins a row with {fault}"


def _escape(found: re.Match[str]) -> str:
    return found[0] if found[1] else r"\\"
