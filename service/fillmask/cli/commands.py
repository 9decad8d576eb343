"""Commands for a text or for the rows of a file or a stream, with their options."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from fillmask.cli.errors import CommandError
from fillmask.cli.requests import TextFields
from fillmask.cli.tasks import DEFAULT_TASK
from fillmask.errors import quote
from fillmask.tables.delimited import DEFAULT, Dialect

DEFAULT_FIELD = "inputs"
DEFAULT_PAIR_FIELD = "text_pair"  # only for the task classify

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
    def text_fields(self) -> TextFields:
        if self.text_pair_column is None and self.task == "classify":
            return TextFields(self.field, DEFAULT_PAIR_FIELD, optional_pair=True)
        return TextFields(self.field, self.text_pair_column)


Command = TextCommand | RowsCommand
