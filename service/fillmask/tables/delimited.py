r"""Tables with a delimiter between their cells, such as CSV and TSV, read row by row.

Quotation marks have a meaning in CSV and are text in TSV, unless --quoting says otherwise. After a
malformed row, reading goes on with the line after the one where the row begins.
"""

import argparse
import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

from fillmask.errors import quote
from fillmask.tables.record_lines import BACKSLASH, RecordLines
from fillmask.tables.streams import (
    ENCODE,
    MAX_LINE_BYTES,
    TableError,
    open_text,
    read_lines,
    suffix_of,
)

Quoting = Literal["csv", "backslash", "none"]
_READERS: dict[Quoting, dict[str, Any]] = {
    "csv": {},
    "backslash": {"doublequote": False, "escapechar": "\\"},
    "none": {"quoting": csv.QUOTE_NONE},
}
_DELIMITERS = (",", "\t", ";", "|")
BLANK = "is blank; remove it"


@dataclass(frozen=True, slots=True)
class Dialect:
    """Options for reading a table. None means what the name and the start of the file say."""

    delimiter: str | None = None
    quoting: Quoting | None = None
    encoding: str | None = None

    @classmethod
    def of(cls, given: argparse.Namespace) -> Self:
        return cls(*(getattr(given, one.name, None) for one in fields(cls)))

    @staticmethod
    def add_options(parser: argparse._ActionsContainer) -> None:
        parser.add_argument(
            "--delimiter",
            type=_delimiter,
            metavar="CHAR",
            help="character between the cells of CSV and TSV, or tab (default by name and header)",
        )
        parser.add_argument(
            "--quoting",
            choices=get_args(Quoting),
            metavar="|".join(get_args(Quoting)),
            help="quotation marks enclose cells and are doubled in them (default for CSV), have a "
            "backslash in them, or are text (default between tabs)",
        )
        parser.add_argument(
            "--encoding",
            type=_encoding,
            metavar="NAME",
            help="encoding of the text, such as cp1252 (default UTF-8, or by byte order mark)",
        )


def _delimiter(argument: str) -> str:
    delimiter = {"tab": "\t", r"\t": "\t"}.get(argument, argument)
    if len(delimiter) != 1 or delimiter in '"\\\r\n ':
        raise argparse.ArgumentTypeError(
            f"must be one character, such as ; or | or tab (got {quote(argument)})"
        )
    return delimiter


def _encoding(argument: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), argument)
    except (LookupError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f"must be an encoding of Python, such as cp1252 or utf-16 (got {quote(argument)})"
        ) from error
    return codecs.lookup(argument).name


DEFAULT = Dialect()


class Record(NamedTuple):
    """Row of a table."""

    line: int  # number of the line where the row begins, from 1
    cells: list[str]  # or as many as are known
    problem: str | None = None  # the end of a sentence that begins with the line


class Table:
    """Rows of a delimited file below its header, without the blank lines at its end.

    Args:
        wanted: a column of the table, which tells the delimiter if the file's name is wrong.
        note: function that shows what is unusual about the file.

    Raises:
        TableError: the file has no valid header.
    """

    def __init__(
        self, path: Path, name: str, dialect: Dialect, wanted: str, note: Callable[[str], object]
    ) -> None:
        self._path = path
        self._name = name
        self._dialect = dialect
        self._note = note
        separator = self._separator()
        known = dialect.delimiter or separator
        by_name = "\t" if suffix_of(path) == ".tsv" else ","
        delimiters = [known] if known else [by_name, *_DELIMITERS]
        ways = [(one, quoting) for one in delimiters for quoting in self._quotings(one)]
        headers = ((way, self._header(*way)) for way in ways)
        first = next(headers)
        found = (one for one in chain([first], headers) if wanted in one[1].cells)
        (self._delimiter, self._quoting), header = next(found, first)
        if (self._delimiter, self._quoting) != ways[0] or separator:
            delimiter = "tab" if self._delimiter == "\t" else self._delimiter
            note(
                f"{name} is read with --delimiter {delimiter} and --quoting {self._quoting}, as "
                f"its line {header.line} suggests with the column {quote(wanted)}."
            )
        if header.problem is not None:
            raise TableError(f"{name}, line {header.line} {header.problem}.")
        self._header_line = header.line
        self.columns = self._columns(header)

    def records(self) -> Iterator[Record]:
        """Read the rows, also those with a problem.

        Raises:
            TableError: the file is damaged, or its quotation marks have more than one meaning.
        """
        rows: list[Record] = []  # blank ones, and then one that is not
        for row in self._rows():
            rows.append(row)
            if row.problem == BLANK:
                continue
            if self._quoting == "none" and self._dialect.quoting is None and self._is_csv(row):
                raise TableError(
                    f"{self._name}, line {row.line} has a cell in the quotation marks of CSV, or "
                    "one that begins with a quotation mark and goes on in the next cell or line; "
                    "set --quoting csv, or none to read quotation marks as text."
                )
            yield from map(self._checked, rows)
            rows = []

    def _checked(self, row: Record) -> Record:
        problem, cells = row.problem, row.cells
        text = "".join(cells)
        if not text.isascii() and text != _printable(text):
            problem = ENCODE
        elif "\0" in text:
            problem = "has a NUL character; remove it"
        if problem is not None:
            cells = [_printable(cell) for cell in cells]
        elif len(cells) != len(self.columns):
            backslash = self._quoting == "csv" and any(cell.endswith("\\") for cell in cells)
            cure = BACKSLASH if backslash else "correct it, or set --delimiter or --quoting"
            problem = (
                f"must have {len(self.columns)} cells, like the header (got {len(cells)}); {cure}"
            )
        return Record(row.line, cells[: len(self.columns)], problem)

    def _is_csv(self, row: Record) -> bool:
        """Return whether a row looks as if CSV's rules hold, of which a TSV file need not tell."""
        quoted = [cell for cell in row.cells if cell.startswith('"') or cell.endswith('"')]
        if len(row.cells) != len(self.columns):
            return bool(quoted)
        insides = [cell[1:-1] for cell in quoted if len(cell) > 1 and cell[0] == cell[-1]]
        return any('""' in one and '"' not in one.replace('""', "") for one in insides)

    def _separator(self) -> str | None:
        """Return the delimiter that Excel's first line names, such as `sep=;`."""
        with open_text(self._path, self._dialect.encoding) as stream:
            first = next(read_lines(stream), [None])[0] or b""
        found = re.fullmatch(r'"?sep=(.)"?\s*', first.decode(errors="replace"), re.IGNORECASE)
        self._skipped_lines = int(found is not None)
        return found and found[1]

    def _quotings(self, delimiter: str) -> tuple[Quoting, ...]:
        if self._dialect.quoting is not None:
            return (self._dialect.quoting,)
        return ("none", "csv") if delimiter == "\t" else ("csv",)

    def _header(self, delimiter: str, quoting: Quoting) -> Record:
        rows = (row for row in self._parse(delimiter, quoting) if row.problem != BLANK)
        header = next(rows, None)
        if header is None:
            raise TableError(f"{self._name} is empty; its first row must name the columns.")
        invalid = any(cell != _printable(cell) for cell in header.cells)
        return header._replace(problem=ENCODE) if invalid else header

    def _columns(self, header: Record) -> tuple[str, ...]:
        names = header.cells
        blank = [place for place, name in enumerate(names) if not name.strip()]
        if len(blank) > 1:
            names = [f"column_{n}" if not name.strip() else name for n, name in enumerate(names, 1)]
            new = ", ".join(names[place] for place in blank)
            self._note(f"{self._name}: the columns without a name are called {new}.")
        for place, name in enumerate(names):
            if (first := names.index(name)) < place:
                raise TableError(
                    f"{self._name}, line {header.line} has two columns {quote(name)} "
                    f"({first + 1} and {place + 1}); rename one."
                )
        return tuple(names)

    def _rows(self) -> Iterator[Record]:
        rows = self._parse(self._delimiter, self._quoting)
        return (row for row in rows if row.line > self._header_line)

    def _parse(self, delimiter: str, quoting: Quoting) -> Iterator[Record]:
        # the cell of an unclosed quotation mark is long
        csv.field_size_limit(MAX_LINE_BYTES)
        with open_text(self._path, self._dialect.encoding) as stream:
            lines = RecordLines(stream, self._skipped_lines, backslash=quoting == "backslash")
            while True:
                reader = csv.reader(lines, delimiter=delimiter, strict=True, **_READERS[quoting])
                try:
                    for cells in reader:
                        blank = not cells or (len(cells) == 1 and cells[0].isspace())
                        yield Record(lines.first, *(([], BLANK) if blank else (cells, None)))
                        lines.begin_record()
                except csv.Error as error:
                    known = lines.complete_cells(delimiter)
                    yield Record(lines.first, known, lines.describe(error, quoting))
                    lines.rewind()
                else:
                    return


def _printable(cell: str) -> str:
    """Replace bytes without a meaning, and NUL."""
    return cell.encode(errors="surrogateescape").decode(errors="replace").replace("\0", "\ufffd")
