"""What the command may be asked to do: fill a text, a file, or a stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.command.problems import OnError
from service.command.shard import WHOLE, Shard

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
class Filling:
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
    filling: Filling
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
    filling: Filling


Task = TextTask | FileTask | StreamTask
