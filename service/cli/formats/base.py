"""Readers and writers of rows, whatever the format."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from pydantic_core import PydanticSerializationError, to_json

from service.cli.errors import CommandError
from service.errors import quote
from service.tasks.options import FillOptions

Item = TypeVar("Item")
Fields = dict[str, Any]

BLOCK_ROWS = 256


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row without fields; the sentence says why."""

    sentence: str


class Block(ABC):
    """Some rows that follow each other.

    Attributes:
        first: the number of the first, from 0 for the first of the file.
    """

    first: int

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def part(self, start: int, stop: int) -> Self:
        """The rows from one place in the block to before another."""

    @abstractmethod
    def fields(self) -> list[Fields | Unreadable]:
        """The fields of each row."""

    def json_objects(self) -> list[bytes]:
        """Each row as a JSON object; an unreadable one as an empty one.

        Raises:
            CommandError: a value has no place in JSON.
        """
        return [b"{}" if isinstance(row, Unreadable) else as_json(row) for row in self.fields()]


@dataclass(frozen=True)
class ListBlock(Block):
    """Rows in a list, as they were read.

    Attributes:
        rows: those.
    """

    first: int
    rows: Sequence[Any]

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> Self:
        """See `Block`."""
        return replace(self, first=self.first + start, rows=self.rows[start:stop])


class Rows(ABC):
    """The rows of a file.

    Attributes:
        name: the file's, for errors.
        columns: the fields that every row has, in order; None where each row has its own.
        row_parameters: whether a row may say itself how it is to be filled.
    """

    name: str
    columns: tuple[str, ...] | None
    row_parameters: bool

    @abstractmethod
    def count(self) -> int:
        """How many there are.

        Raises:
            CommandError: they cannot be told apart.
        """

    @abstractmethod
    def blocks(
        self, start: int = 0, stop: int | None = None, only: Sequence[str] | None = None
    ) -> Iterator[Block]:
        """The rows in order, at most BLOCK_ROWS at a time.

        Args:
            start: number of the first.
            stop: number of the one after the last; None for all there are.
            only: fields that are needed; others may be left out.

        Raises:
            CommandError: they cannot be told apart.
        """


def cut(
    batches: Iterable[Sequence[Item]], start: int, stop: int | None
) -> Iterator[tuple[int, Sequence[Item]]]:
    """The items from one number to before another, in blocks with the number of their first.

    Args:
        batches: all of them in order, as they come.
        start: number of the first, counted from 0.
        stop: number of the one after the last, or None.
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


def without_blank_end(batches: Iterable[Sequence[Item]], blank: Item) -> Iterator[list[Item]]:
    """The items without the blank ones behind the last that is not.

    A blank item is passed on with what follows it; only their number is kept until then.

    Args:
        batches: all of them in order, as they come.
        blank: what a blank item is equal to.
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


def row_name(name: str, number: int) -> str:
    """What people call a row, for errors.

    Args:
        name: of the file.
        number: from 0.
    """
    return f"{name}, row {number + 1}"


def is_text(value: str) -> bool:
    """Whether it is without halves of characters, which Python has for bytes that are no UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_json(value: object) -> bytes:
    """A value as JSON: bytes in base64, what is not a number as null.

    Raises:
        CommandError: it has no place in JSON.
    """
    try:
        return to_json(value, bytes_mode="base64", inf_nan_mode="null")
    except PydanticSerializationError as error:
        raise CommandError(f"A value has no place in JSON: {error}.") from error


FILLS, ERROR = "fills", "error"

# takes rows and their answers, in order
Write = Callable[[Block, Sequence[bytes]], None]


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What rows are given.

    Attributes:
        options: how they are filled where they do not say it themselves.
        errors: whether a row may have an error in place of fills.
    """

    options: FillOptions
    errors: bool

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a row's new fields."""
        return (FILLS, ERROR) if self.errors else (FILLS,)


class RowWriter(Protocol):
    """A format that is written.

    Attributes:
        reserved: what no row may call a field of its own, where that shows only row by row. Such
            a row is reported or ends the command.
    """

    reserved: tuple[str, ...]

    def writing(self, path: Path) -> AbstractContextManager[Write]:
        """Write a file; at the end of the `with` it is on the disk.

        Raises:
            CommandError: a value has no place in this format.
        """


def refuse_clash(called: str, columns: Iterable[str], own: Iterable[str]) -> None:
    """Refuse columns whose names are those of what is written.

    Args:
        called: what has them.
        columns: of the input.
        own: what is written beside them.

    Raises:
        CommandError: two have the same name.
    """
    if clash := clash_of(columns, own):
        raise CommandError(f"{called} {clash}")


def clash_of(columns: Iterable[str], own: Iterable[str]) -> str | None:
    """The end of a sentence about a name that is taken; None where all are free."""
    if not (clash := sorted(set(columns) & set(own))):
        return None
    return (
        f"has a field {quote(clash[0])}, and what is written has one of its own of that name; "
        "rename it."
    )
