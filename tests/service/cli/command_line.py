"""Runs of `fillmask` in the test's process and the files of the runs."""

import csv
import gzip
import io
import json
import lzma
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from fillmask.cli.__main__ import execute
from fillmask.cli.formats.base import Block, Row, Rows
from tests.service.tiny import MAX_TOKENS, WORDS

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
    ".xz": lzma.compress,
}
WHOLE_WORDS = [word for word in WORDS if word.isalpha()]


@dataclass(frozen=True)
class Done:
    """Result of a command: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    """Stream that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def fillmask(*arguments: object) -> Done:
    """Run `fillmask` in this process and return its result."""
    # standard output is UTF-8 where the command writes bytes
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
    with mock.patch.object(sys, "stdout", out), mock.patch.object(sys, "stderr", err):
        code = execute([str(argument) for argument in arguments])
    out.seek(0)
    return Done(code, out.read(), err.getvalue())


def dice(seed: int | str = 0) -> random.Random:
    """Return a random generator with a fixed seed."""
    return random.Random(seed)  # noqa: S311 - a choice, not a secret


def random_texts(count: int, seed: int = 0) -> list[str]:
    """Make texts of the tiny model's words, with one to three masks per text."""
    rng = dice(seed)
    texts = []
    for _ in range(count):
        words = rng.choices(WHOLE_WORDS, k=rng.randint(1, MAX_TOKENS - 8))
        for place in rng.choices(range(len(words)), k=rng.randint(1, 3)):
            words[place] = "[MASK]"
        texts.append(" ".join(words))
    return texts


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as JSONL and return the path."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def write_texts(path: Path, texts: Sequence[str]) -> Path:
    """Write texts as the field `inputs`, in the format and the compression of the path."""
    endings = path.suffixes
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"inputs": pa.array(texts, pa.string())}), path, row_group_size=100)
        return path
    if endings[0] in {".jsonl", ".ndjson", ".json"}:
        rows = [json.dumps({"inputs": text}) for text in texts]
        content = "".join(f"{row}\n" for row in rows)
        content = f"[{','.join(rows)}]" if endings[0] == ".json" else content
    else:
        content = "".join(f"{text}\n" for text in texts)
        content = content if endings[0] == ".txt" else f"inputs\n{content}"
    compress = COMPRESS[path.suffix] if len(endings) > 1 else bytes
    path.write_bytes(compress(content.encode()))
    return path


def numbered(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row per text, with the text and its number."""
    return [{"id": number, "inputs": text} for number, text in enumerate(texts)]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of JSONL, CSV or Parquet."""
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def rows_in(rows: Rows, start: int = 0, stop: int | None = None) -> list[Row]:
    return [row for block in rows.blocks(start, stop) for row in block.rows()]


def fields_in(rows: Rows, start: int = 0, stop: int | None = None) -> list[dict[str, Any] | str]:
    """Return the fields of each row, or its problem."""
    return [row.problem or row.fields for row in rows_in(rows, start, stop)]


def block_of(first: int, count: int) -> Block:
    """Return a block of rows without fields."""
    return Block(first, [b"{}"] * count, lambda items, _: [Row({}, line=one) for one in items])
