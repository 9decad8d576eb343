"""Commands for a text or for the rows of a file or a stream, with their options."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import Fields, Rows
from fillmask.cli.tasks import DEFAULT_TASK
from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.texts import InputText, TextPair
from fillmask.parameters.values import describe
from fillmask.tables.delimited import DEFAULT, Dialect

DEFAULT_FIELD = "inputs"
DEFAULT_PAIR_FIELD = "text_pair"  # only for the task classify
_MAX_NAMED = 8  # maximum number of fields that an error message names

OnError = Literal["error", "report"]


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several equal parts of the input rows."""

    index: int  # from 0
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a shard in the form `I/N`, the index and the number of shards.

        Raises:
            CommandError: the text has another form, or the index is not below the number of shards.
        """
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
        if not found or int(found[1]) >= int(found[2]):
            raise CommandError(
                f"--shard must be I/N with I from 0 to N - 1, such as 0/8 (got {quote(text)})."
            )
        return cls(int(found[1]), int(found[2]))

    def range_of(self, rows: int) -> tuple[int, int]:
        """Return the index of the shard's first row and the index after its last row."""
        return rows * self.index // self.count, rows * (self.index + 1) // self.count

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


WHOLE = Shard(0, 1)


@dataclass(frozen=True, slots=True)
class TextCommand:
    """Command that processes one text and prints its results."""

    text: str | None  # None means each line of standard input
    parameters: Mapping[str, Any]  # of the HTTP API, not validated yet
    as_json: bool = False
    task: str = DEFAULT_TASK
    text_pair: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsCommand:
    """Command that processes the rows of a file or a stream, with its arguments.

    Attributes:
        input: file to read. None means JSONL on standard input.
        output: file to write. None means JSONL on standard output, which cannot be continued.
        parameters: parameters of the HTTP API, not validated yet.
        text_pair_column: None means DEFAULT_PAIR_FIELD for the task classify, where a row without
            a second text is a single text. For other tasks, None means no second texts.
    """

    input: Path | None
    output: Path | None
    parameters: Mapping[str, Any]
    field: str = DEFAULT_FIELD
    on_error: OnError = "error"
    shard: Shard = WHOLE
    task: str = DEFAULT_TASK
    text_pair_column: str | None = None
    dialect: Dialect = DEFAULT
    output_prefix: str | None = None
    overwrite: bool = False
    restart: bool = False

    @property
    def pair_field(self) -> str | None:
        """Field or column of the second texts."""
        by_default = DEFAULT_PAIR_FIELD if self.task == "classify" else None
        return by_default if self.text_pair_column is None else self.text_pair_column

    def read_text(self, fields: Fields) -> InputText:
        """Return the text or the pair of a row.

        Raises:
            InvalidRequestError: a field is missing or has no text.
        """
        text, pair = _read_text(fields, self.field, "--field"), self.pair_field
        is_optional = self.text_pair_column is None
        if pair is None or (is_optional and fields.get(pair) in (None, "")):
            return text
        return TextPair(text, _read_text(fields, pair, "--text-pair-column"))

    def check_columns(self, rows: Rows) -> None:
        """Reject a file without the columns of the texts.

        Raises:
            CommandError: a column is missing.
        """
        wanted = {self.field: "--field"}
        if self.text_pair_column is not None:
            wanted[self.text_pair_column] = "--text-pair-column"
        for name, flag in wanted.items():
            if rows.columns is not None and name not in rows.columns:
                existing = _list_fields("columns", rows.columns, flag)
                raise CommandError(
                    f"{rows.name} has no column {quote(name)}; {existing}{rows.hint}"
                )


Command = TextCommand | RowsCommand


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
