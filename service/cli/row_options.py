"""Options of each row, and the shard of the rows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from service.cli.errors import CommandError
from service.cli.problems import OnError
from service.errors import quote


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of so many.

    Attributes:
        index: its number, from 0.
        count: how many there are.
    """

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `I/N`.

        Raises:
            CommandError: it is none.
        """
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
        if not found or int(found[1]) >= int(found[2]):
            raise CommandError(
                f"--shard is {quote(text)}; allowed is I/N, as in 0/8, with I from 0 to N - 1."
            )
        return cls(int(found[1]), int(found[2]))

    def range_of(self, rows: int) -> tuple[int, int]:
        """Of so many rows its first, and the one after its last."""
        return rows * self.index // self.count, rows * (self.index + 1) // self.count

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


WHOLE = Shard(0, 1)


DEFAULT_FIELD = "inputs"


@dataclass(frozen=True, slots=True)
class TextTask:
    """Fill a text and print its fills.

    Attributes:
        text: with at least one mask.
        parameters: as over HTTP; not checked yet.
        as_json: whether they are printed as JSON.
    """

    text: str
    parameters: Mapping[str, Any]
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class RowOptions:
    """How rows are filled.

    Attributes:
        parameters: as over HTTP; not checked yet.
        field: which holds the texts.
        on_error: what becomes of rows that cannot be filled.
        shard: the part of the rows that is done.
    """

    parameters: Mapping[str, Any]
    field: str = DEFAULT_FIELD
    on_error: OnError = "error"
    shard: Shard = WHOLE


@dataclass(frozen=True, slots=True)
class FileTask:
    """Fill the rows of a file and write another.

    Attributes:
        input: the file.
        output: the other.
        filling: how.
        overwrite: whether an output that is there may be replaced.
        restart: whether what an earlier run has done is thrown away.
    """

    input: Path
    output: Path
    filling: RowOptions
    overwrite: bool = False
    restart: bool = False


@dataclass(frozen=True, slots=True)
class StreamTask:
    """Fill rows and write them to standard output as JSONL.

    Attributes:
        input: a file; None for JSONL on standard input.
        filling: how.
    """

    input: Path | None
    filling: RowOptions


Task = TextTask | FileTask | StreamTask
