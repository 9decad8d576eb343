"""Runs of `fillmask` in the test's process and the files of the runs."""

import csv
import io
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from fillmask.cli.__main__ import execute
from tests.service.tiny import MAX_TOKENS, WORDS

WHOLE_WORDS = [word for word in WORDS if word.isalpha()]


@dataclass(frozen=True)
class Done:
    """Result of a command: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


def fillmask(*arguments: object) -> Done:
    """Run `fillmask` in this process and return its result."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline=""), io.StringIO()
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


def numbered(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row per text, with the text and its number."""
    return [{"id": number, "inputs": text} for number, text in enumerate(texts)]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
