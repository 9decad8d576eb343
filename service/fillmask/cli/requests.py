"""Requests that the command creates from rows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import Block, Fields, Row, Rows
from fillmask.cli.tasks import TaskRows
from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText, TextPair
from fillmask.parameters.values import describe, merge_parameters

PARAMETERS = "parameters"
_MAX_NAMED = 8  # maximum number of fields that an error message names


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A text or a pair with its parameters."""

    text: InputText
    parameters: Any


Item = RowRequest | str  # the request of a row, or the row's problem
RequestBlock = tuple[Block, Sequence[Item]]


@dataclass(frozen=True, slots=True)
class TextFields:
    """Fields or columns of the texts of a row."""

    text: str
    text_pair: str | None = None  # None if all rows are single texts
    optional_pair: bool = False  # a row without a second text is a single text

    def read(self, fields: Fields) -> InputText:
        """Return the text or the pair of a row.

        Raises:
            InvalidRequestError: a field is missing or has no text.
        """
        text = _read_text(fields, self.text, "--field")
        if self.text_pair is None:
            return text
        if self.optional_pair and fields.get(self.text_pair) in (None, ""):
            return text
        return TextPair(text, _read_text(fields, self.text_pair, "--text-pair-column"))

    def check_columns(self, rows: Rows) -> None:
        """Reject a file without the columns of the texts.

        Raises:
            CommandError: a column is missing.
        """
        if rows.columns is None:
            return
        wanted = {self.text: "--field"}
        if self.text_pair is not None and not self.optional_pair:
            wanted[self.text_pair] = "--text-pair-column"
        for name, flag in wanted.items():
            if name not in rows.columns:
                existing = _list_fields("columns", rows.columns, flag)
                raise CommandError(
                    f"{rows.name} has no column {quote(name)}; {existing}{rows.hint}"
                )


class RowRequestReader:
    """Reader that turns rows into requests.

    A row's own `parameters` field overrides the default parameters, which give `defaults`.

    Raises:
        InvalidRequestError: a parameter is invalid.
        CommandError: the rows lack a column of the texts.
    """

    def __init__(
        self,
        task: TaskRows,
        text_fields: TextFields,
        parameters: Mapping[str, Any],
        limits: Limits,
        rows: Rows,
    ) -> None:
        self.defaults = task.read_parameters(parameters, limits)
        self._task = task
        self._text_fields = text_fields
        self._parameters = parameters
        self._limits = limits
        self._rows = rows
        text_fields.check_columns(rows)

    def read(self, start: int, stop: int | None) -> Iterator[RequestBlock]:
        """Read the requests of the rows from index `start` up to, but not including, `stop`.

        Raises:
            CommandError: the file is damaged.
        """
        own = PARAMETERS if self._rows.row_parameters else None
        names = (self._text_fields.text, self._text_fields.text_pair, own)
        needed = [name for name in names if name is not None]
        for block in self._rows.blocks(start, stop, needed):
            yield block, [self._parse(row) for row in block.rows()]

    def _parse(self, row: Row) -> Item:
        if row.problem is not None:
            return row.problem
        own = row.fields.get(PARAMETERS) if self._rows.row_parameters else None
        if isinstance(own, dict):
            own = merge_parameters(self._parameters, own)
        try:
            text = self._text_fields.read(row.fields)
            parameters = self.defaults
            if own is not None:
                parameters = self._task.read_parameters(own, self._limits)
        except InvalidRequestError as error:
            return error.text
        return RowRequest(text, parameters)


def _read_text(fields: Fields, name: str, flag: str) -> str:
    if name not in fields:
        existing = _list_fields("fields", fields, flag)
        raise InvalidRequestError(f"The row has no field {quote(name)}; {existing}")
    text = fields[name]
    if not isinstance(text, str) or not text:
        raise InvalidRequestError(f"{name} must be a non-empty text (got {describe(text)}).")
    return text


def _list_fields(noun: str, names: Collection[str], flag: str) -> str:
    """Return the end of an error message, which lists the existing fields and names a flag."""
    shown = ", ".join(quote(name) for name in list(names)[:_MAX_NAMED])
    more = " and others" if len(names) > _MAX_NAMED else ""
    existing = f"it has {shown}{more}" if names else f"it has no {noun}"
    kind = "second texts" if flag == "--text-pair-column" else "texts"
    return f"{existing}. Select the field of the {kind} with {flag}."
