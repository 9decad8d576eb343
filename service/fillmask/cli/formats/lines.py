"""Files with one row per line, such as plain text."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from fillmask.cli.formats.base import Row, Rows, Source
from fillmask.cli.formats.output import Format
from fillmask.tables.streams import ENCODE, MAX_LINE_BYTES, Stream, read_lines

_END = re.compile(rb"\r?\n?\Z")


class LineRows(Rows):
    """Rows of a file with one row per line.

    Lines of only white space are blank, and no rows at the end of the file.
    """

    def batches(self, _only: Sequence[str] | None = None, /) -> Iterator[Sequence[bytes | None]]:
        with self.source.open() as stream:
            yield from self.lines(stream)

    def lines(self, stream: Stream) -> Iterator[Sequence[bytes | None]]:
        """Read the lines without their ends. A line that is too long is None."""
        batches = (
            [line and (b"" if line.isspace() else _END.sub(b"", line)) for line in lines]
            for lines in read_lines(stream)
        )
        return drop_trailing_blanks(batches)

    def parse(self, item: bytes | None, number: int) -> Row:
        if item is None:
            return Row({}, f"The line is longer than {MAX_LINE_BYTES} bytes; shorten it.")
        return self.parse_line(item, number)

    @abstractmethod
    def parse_line(self, line: bytes, number: int) -> Row: ...


def drop_trailing_blanks(
    batches: Iterable[Sequence[bytes | None]],
) -> Iterator[list[bytes | None]]:
    """Drop the blank lines after the last line that is not blank."""
    held: list[bytes | None] = []
    for batch in batches:
        held += batch
        whole = len(held)
        while whole and held[whole - 1] == b"":
            whole -= 1
        if whole:
            yield held[:whole]
        held = held[whole:]


class TextRows(LineRows):
    """Rows of a plain-text file, whose texts get the name of the field."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.columns: tuple[str, ...] = (source.field,)

    def parse_line(self, line: bytes, number: int) -> Row:  # noqa: ARG002 - for messages about JSON
        try:
            return Row({self.columns[0]: line.decode()})
        except UnicodeDecodeError:
            return Row({}, f"The line {ENCODE}.")


TEXT = Format((".txt",), TextRows)
