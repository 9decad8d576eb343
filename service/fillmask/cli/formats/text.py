"""Reader of plain text, one text per line."""

from collections.abc import Sequence
from dataclasses import dataclass

from fillmask.cli.formats.base import Block, Fields, UnreadableRow
from fillmask.cli.formats.format import Format
from fillmask.cli.formats.lines import LineBlock, LineRows, OpenStream


@dataclass(frozen=True)
class TextBlock(LineBlock):
    """Block of plain-text lines."""

    field: str

    def _read(self, line: bytes, number: int) -> Fields | UnreadableRow:  # noqa: ARG002 - for JSON errors
        try:
            return {self.field: line.decode()}
        except UnicodeDecodeError:
            return UnreadableRow("The line is not valid UTF-8; encode it as UTF-8.")


class TextRows(LineRows):
    """Rows of a plain-text file.

    Args:
        field: name for the field of the texts.
    """

    row_parameters = False

    def __init__(self, name: str, open_stream: OpenStream, field: str) -> None:
        super().__init__(name, open_stream)
        self.columns = (field,)
        self._field = field

    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block:
        return TextBlock(first, lines, self._field)


TEXT = Format((".txt",), lambda source: TextRows(source.name, source.open, source.field))
