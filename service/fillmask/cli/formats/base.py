"""Interfaces of formats for reading rows in blocks and for writing rows with results."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from pydantic_core import PydanticSerializationError, to_json

from fillmask.cli.errors import CommandError
from fillmask.cli.progress import print_status
from fillmask.cli.tasks.base import AnyTask
from fillmask.errors import quote
from fillmask.tables.delimited import Dialect
from fillmask.tables.streams import OpenStream, open_text

Item = TypeVar("Item")
Fields = dict[str, Any]

BLOCK_ROWS = 256


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that the parser rejects, with the error message and the fields that are known."""

    message: str
    known: Fields = field(default_factory=dict)


@dataclass(frozen=True)
class Block(ABC):
    """Consecutive rows of a file.

    Attributes:
        first: index of the block's first row, from 0.
    """

    first: int

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def slice(self, start: int, stop: int) -> Self:
        """Return a part of the block, from row `start` up to, but not including, row `stop`."""

    @abstractmethod
    def fields(self) -> list[Fields | UnreadableRow]:
        """Return the fields of each row."""

    def json_objects(self) -> list[bytes]:
        """Return each row as a JSON object of its known fields.

        Raises:
            CommandError: JSON cannot represent a value.
        """
        return [as_json(row) for row in self.known_fields()]

    def known_fields(self) -> list[Fields]:
        """Return the fields of each row, as far as they are known."""
        return [row.known if isinstance(row, UnreadableRow) else row for row in self.fields()]


@dataclass(frozen=True)
class ListBlock(Block):
    """Block with its rows in a list.

    Attributes:
        rows: the rows, in a type that depends on the format.
    """

    rows: Sequence[Any]

    def __len__(self) -> int:
        return len(self.rows)

    def slice(self, start: int, stop: int) -> Self:
        """See `Block`."""
        return replace(self, first=self.first + start, rows=self.rows[start:stop])


class Rows(ABC):
    """Reader of the rows of a file.

    Attributes:
        name: name of the file, for error messages.
        columns: names of the fields that all rows have, in order. None means that each row has its
            own fields.
        row_parameters: true if a row may have its own parameters in a `parameters` field.
        rereadable: true if the rows can be read more than once.
        hint: advice for a file that lacks a column.
        schema: Arrow schema of the rows of Parquet files.
        files: the files of the rows.
    """

    name: str
    columns: tuple[str, ...] | None
    row_parameters: bool
    rereadable = True
    hint = ""
    schema: Any = None
    files: Sequence[Path] = ()

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows.

        Raises:
            CommandError, TableError: the file is damaged.
        """

    def find_columns(self) -> tuple[str, ...]:
        """Return the names of all fields, in order of first appearance.

        Rows with own fields are all read, unless they can be read only once.
        """
        if self.columns is not None:
            return self.columns
        rows = (row for block in self.blocks() for row in block.known_fields())
        return tuple({name: None for row in rows for name in row}) if self.rereadable else ()

    @abstractmethod
    def blocks(
        self, start: int = 0, stop: int | None = None, only: Sequence[str] | None = None
    ) -> Iterator[Block]:
        """Read the rows in order, in blocks of up to BLOCK_ROWS rows.

        Args:
            start: index of the first row.
            stop: index after the last row. None means the end of the file.
            only: names of the fields to read. None means all fields. Some formats always read all
                fields.

        Raises:
            CommandError, TableError: the file is damaged.
        """


def slice_batches(
    batches: Iterable[Sequence[Item]], start: int, stop: int | None
) -> Iterator[tuple[int, Sequence[Item]]]:
    """Yield a range of items in slices of up to BLOCK_ROWS, each with the index of its first item.

    Args:
        batches: all items in order, in lists of any length.
        start: index of the first item.
        stop: index after the last item. None means the end.
    """
    number = 0
    for batch in batches:
        from_ = max(start - number, 0)
        to = len(batch) if stop is None else min(stop - number, len(batch))
        for place in range(from_, to, BLOCK_ROWS):
            yield number + place, batch[place : min(place + BLOCK_ROWS, to)]
        number += len(batch)
        if stop is not None and number >= stop:
            return


def drop_trailing_blanks(batches: Iterable[Sequence[Item]], blank: Item) -> Iterator[list[Item]]:
    """Drop the blank items after the last item that is not blank.

    The function stores only the number of blank items until an item that is not blank follows.

    Args:
        batches: all items in order, in lists of any length.
        blank: value of a blank item.
    """
    held = 0
    for batch in batches:
        whole = len(batch)
        while whole and batch[whole - 1] == blank:
            whole -= 1
        if whole:
            for _ in range(held // BLOCK_ROWS):
                yield [blank] * BLOCK_ROWS
            yield [*[blank] * (held % BLOCK_ROWS), *batch[:whole]]
            held = 0
        held += len(batch) - whole


def row_label(name: str, number: int) -> str:
    """Return the name of a row in error messages, in which row numbers start at 1.

    Args:
        number: index of the row, from 0.
    """
    return f"{name}, row {number + 1}"


def is_encodable(value: str) -> bool:
    """Return whether UTF-8 can encode a string. UTF-8 cannot encode unpaired surrogates."""
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


ERROR = "error"

# function that writes rows with their answers, in order
Write = Callable[[Block, Sequence[bytes]], None]


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Options for the fields that the output adds to a row.

    Attributes:
        task_options: options of rows without parameters of their own.
        report_errors: true if a row may have an error instead of results.
        prefix: beginning of the names. None means one that no field of the rows makes necessary
            or impossible.
        compressed: true if the output is compressed with gzip.
    """

    task: AnyTask
    task_options: Any
    report_errors: bool
    prefix: str | None = None
    compressed: bool = False

    def names(self, rows: Rows, results: Iterable[str]) -> dict[str, str]:
        """Return the names of the fields to add, for the results of a row and its error.

        The names are the same for all shards of a file.

        Raises:
            CommandError: the rows have a field with the prefix and the name of a result.
        """
        results = (*results, ERROR) if self.report_errors else tuple(results)
        columns = rows.find_columns()
        automatic = ("fillmask_" * number for number in count())
        for prefix in automatic if self.prefix is None else (self.prefix,):
            names = {result: f"{prefix}{result}" for result in results}
            clash = describe_name_clash(columns, names.values())
            if clash is None:
                break
            if self.prefix is not None:
                raise CommandError(f"{rows.name} {clash}")
        if prefix and self.prefix is None:
            print_status(
                f"{rows.name} has fields with the names of results, which therefore begin with "
                f"{prefix} (--output-prefix sets another beginning)."
            )
        return names


class RowWriter(Protocol):
    """Writer of rows with their results in one format."""

    def open(self, path: Path) -> AbstractContextManager[Write]:
        """Open a file for writing. The end of the `with` block flushes the file to the disk.

        Raises:
            CommandError: the format cannot represent a value.
        """


def describe_name_clash(columns: Iterable[str], added: Iterable[str]) -> str | None:
    """Return the end of an error message about a clash of names, or None without a clash."""
    if not (clash := sorted(set(columns) & set(added))):
        return None
    name = quote(clash[0])
    return f"has the field {name}, which the output adds; set another --output-prefix."


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read.

    Attributes:
        path: path of the file, or of the folder or pattern of `files`.
        field: field of the texts, also if they have no name in the file.
    """

    path: Path
    files: Sequence[Path]
    field: str
    dialect: Dialect

    @property
    def name(self) -> str:
        """Name for error messages."""
        return self.path.name

    @property
    def open(self) -> OpenStream:
        """Function that opens the file at its start, decompressed and as UTF-8."""
        return partial(open_text, self.path, self.dialect.encoding)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files.

    Attributes:
        extensions: ends of the names of files, in lower case.
        read: function that opens the rows of a file from any row on, which is what resuming needs.
        write: function that returns the writer of rows with their results. None for a format that
            the command only reads.
        is_text: True if the command reads compressed files of this format, in any encoding, and
            writes compressed ones.
        dialect: True if the format has delimiters.
    """

    extensions: tuple[str, ...]
    read: Callable[[Source], Rows]
    write: Callable[[Rows, OutputOptions], RowWriter] | None = None
    is_text: bool = True
    dialect: bool = False
