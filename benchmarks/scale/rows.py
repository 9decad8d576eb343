"""Rows that the recipes read, and the rows that they write."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.comparison.texts import FILE, SEED, mask_words


class Answer(NamedTuple):
    """Best fill of a row."""

    row: int
    token: str
    score: float


def write_texts(path: Path, rows: int) -> None:
    """Write a Parquet file of texts with one mask each, always the same."""
    rng = random.Random(SEED)  # noqa: S311 - a choice, not a secret
    lines = islice(cycle(FILE.read_text(encoding="utf-8").splitlines()), rows)
    texts = [mask_words(line, 1, rng) for line in lines]
    pq.write_table(pa.table({"id": range(rows), "inputs": texts}), path)


def read_answers(output: Path) -> Iterator[Answer]:
    """Yield the rows of a Parquet file or of a folder of them, in any order.

    The command nests the fills in a list, the recipes write columns.
    """
    files = sorted(output.rglob("*.parquet")) if output.is_dir() else [output]
    for file in files:
        for row in pq.read_table(file).to_pylist():
            best = row["fills"][0] if "fills" in row else row
            yield Answer(row["id"], best["token_str"], best["score"])


def differences(expected: Iterable[Answer], answers: Iterable[Answer]) -> list[str]:
    """Describe each kind of difference between two outputs. An empty list means equal."""
    wanted = {answer.row: answer for answer in expected}
    found = list(answers)
    times = Counter(answer.row for answer in found)
    kinds = {
        "lost": wanted.keys() - times.keys(),
        "unknown": times.keys() - wanted.keys(),
        "doubled": {row for row, count in times.items() if count > 1},
        "with another token": _differing(wanted, found, "token"),
        "with another score": _differing(wanted, found, "score"),
    }
    return [f"{len(rows)} {kind}, first {min(rows)}" for kind, rows in kinds.items() if rows]


def _differing(wanted: dict[int, Answer], found: Iterable[Answer], name: str) -> set[int]:
    return {
        answer.row
        for answer in found
        if answer.row in wanted and getattr(answer, name) != getattr(wanted[answer.row], name)
    }
