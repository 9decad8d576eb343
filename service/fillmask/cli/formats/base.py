"""Rows of files, which every format reads in blocks and bounded memory."""

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from pydantic_core import PydanticSerializationError, to_json

from fillmask.cli.errors import CommandError
from fillmask.tables.delimited import DEFAULT, Dialect
from fillmask.tables.streams import OpenStream

Item = TypeVar("Item")
Fields = dict[str, Any]

STANDARD_INPUT = "standard input"  # in error messages
BLOCK_ROWS = 256


class Row(NamedTuple):
    """A row of a file."""

    fields: Fields  # or as many as are known
    problem: str | None = None  # message about a row that nobody can read
    line: bytes | None = None  # the row as it stands in a file of JSON

    def to_json(self) -> bytes:
        """Return the fields as a JSON object, byte for byte as in a file of JSON.

        Raises:
            CommandError: JSON cannot represent a value.
        """
        return as_json(self.fields) if self.line is None else self.line


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a file."""

    first: int  # index of the first row, from 0
    items: Sequence[Any]  # the rows before they are parsed, as the format has them
    read: Callable[[Sequence[Any], int], list[Row]]  # parses items, given the index of the first

    def __len__(self) -> int:
        return len(self.items)

    def slice(self, start: int, stop: int) -> Self:
        return replace(self, first=self.first + start, items=self.items[start:stop])

    def rows(self) -> list[Row]:
        return self.read(self.items, self.first)


@dataclass(frozen=True, slots=True)
class Source:
    """Files or a stream to read."""

    name: str  # in messages
    open: OpenStream  # opens the only file at its start, decompressed and as UTF-8
    field: str  # of the texts, also if they have no name in the file
    files: Sequence[Path] = ()  # none for a stream, which can be read only once
    dialect: Dialect = DEFAULT


def standard_input(field: str) -> Source:
    return Source(STANDARD_INPUT, _open_standard_input, field)


def _open_standard_input() -> AbstractContextManager[io.RawIOBase]:
    """Open standard input for reading without a buffer."""
    descriptor = 0
    # the parent process may have made standard input non-blocking
    os.set_blocking(descriptor, True)
    return open(descriptor, "rb", buffering=0, closefd=False)


class Rows(ABC):
    """Reader of the rows of a file, from any row on, which is what resuming needs.

    Attributes:
        columns: names of the fields that all rows have, in order. None means that each row has its
            own fields.
        row_parameters: whether a row may have its own parameters in a `parameters` field.
        hint: advice for a file that lacks a column.
        schema: Arrow schema of Parquet files.
    """

    columns: tuple[str, ...] | None = None
    row_parameters = False
    hint = ""
    schema: Any = None

    def __init__(self, source: Source) -> None:
        self.source = source
        self.name = source.name

    @abstractmethod
    def batches(self, only: Sequence[str] | None = None, /) -> Iterator[Sequence[Any]]:
        """Read all rows without parsing them, in lists of any length.

        Args:
            only: names of the fields to read. Formats that store no columns read all.

        Raises:
            CommandError, TableError: the file is damaged.
        """

    @abstractmethod
    def parse(self, item: Any, number: int) -> Row:
        """Parse the row with an index."""

    def count(self) -> int:
        return sum(map(len, self.batches()))

    def find_columns(self) -> tuple[str, ...]:
        """Return the names of all fields, in order of first appearance.

        Rows with own fields are all read, unless they can be read only once.
        """
        if self.columns is not None:
            return self.columns
        rows = (row for block in self.blocks() for row in block.rows())
        return tuple(
            {name: None for row in rows for name in row.fields} if self.source.files else ()
        )

    def blocks(
        self, start: int = 0, stop: int | None = None, only: Sequence[str] | None = None
    ) -> Iterator[Block]:
        """Read the rows from index `start` up to, but not including, `stop`."""
        number = 0
        for batch in self.batches(only):
            to = len(batch) if stop is None else min(stop - number, len(batch))
            for place in range(max(start - number, 0), to, BLOCK_ROWS):
                items = batch[place : min(place + BLOCK_ROWS, to)]
                yield Block(number + place, items, self._read)
            number += len(batch)
            if stop is not None and number >= stop:
                return

    def _read(self, items: Sequence[Any], first: int) -> list[Row]:
        return [self.parse(item, number) for number, item in enumerate(items, first)]


def in_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Return lists of up to BLOCK_ROWS items."""
    remaining = iter(items)
    return iter(lambda: list(islice(remaining, BLOCK_ROWS)), [])


def row_label(name: str, number: int) -> str:
    """Return the name of a row in messages, where numbers start at 1."""
    return f"{name}, row {number + 1}"


def is_encodable(value: str) -> bool:
    """Return whether UTF-8 can encode a string, which it can't with unpaired surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_json(value: object) -> bytes:
    """Serialize a value as JSON, with base64 for bytes and null for NaN and infinity.

    Raises:
        CommandError: JSON cannot represent the value.
    """
    try:
        return to_json(value, bytes_mode="base64", inf_nan_mode="null")
    except PydanticSerializationError as error:
        raise CommandError(
            f"JSON cannot express a value ({error}); convert the value to text."
        ) from error
