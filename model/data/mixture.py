"""Choosing documents of a corpus by their source: what a published model may and should learn.

A corpus comes with a table of its documents, one row each in file order: source, title, author and
bytes, parted by tabs. A mixture says what share of each source to take, and whose texts to leave
out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from model.data.corpus import open_text

COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Mixture:
    """Shares by source.

    Attributes:
        shares: expected copies of each document of a source; 0.1 takes every tenth at random, 2
            takes each twice. A source not named is left out.
        only_authors: for a source named here, a document is left out unless its author contains
            one of the names.
        seed: of the choice and of the order.
    """

    shares: dict[str, float]
    only_authors: dict[str, tuple[str, ...]]
    seed: int

    @classmethod
    def read(cls, path: Path) -> Mixture:
        """Read a mixture from JSON.

        Raises:
            ValueError: a field is missing, unknown or of the wrong kind.
        """
        fields = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(fields, dict) or set(fields) != {"shares", "only_authors", "seed"}:
            raise ValueError(f"{path} must have exactly shares, only_authors and seed")
        shares, only, seed = fields["shares"], fields["only_authors"], fields["seed"]
        if not isinstance(shares, dict) or not all(map(_is_share, shares.values())):
            raise ValueError(f"{path}: shares must map sources to numbers of at least 0")
        if not isinstance(only, dict) or not all(map(_is_names, only.values())):
            raise ValueError(f"{path}: only_authors must map sources to lists of names")
        if strangers := sorted(set(only) - set(shares)):
            raise ValueError(f"{path}: only_authors names {', '.join(strangers)}, shares do not")
        if type(seed) is not int or seed < 0:
            raise ValueError(f"{path}: seed must be a whole number of at least 0, not {seed!r}")
        return cls(shares, {source: tuple(names) for source, names in only.items()}, seed)


def read_titles(path: Path) -> list[tuple[str, str]]:
    """(source, author) of every document, in file order."""
    with open_text(path) as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    if wrong := [number for number, row in enumerate(rows, 1) if len(row) != COLUMNS]:
        raise ValueError(f"{path}: line {wrong[0]} does not have {COLUMNS} columns")
    return [(row[0], row[2]) for row in rows]


def mix(documents: Iterable[str], titles: list[tuple[str, str]], mixture: Mixture) -> list[str]:
    """The chosen documents in a seeded random order.

    Raises:
        ValueError: there are more or fewer documents than titles, so the table is not theirs.
    """
    generator = np.random.default_rng(mixture.seed)
    chosen = list(_copies(documents, titles, mixture, generator))
    return [chosen[index] for index in generator.permutation(len(chosen))]


def _copies(
    documents: Iterable[str],
    titles: list[tuple[str, str]],
    mixture: Mixture,
    generator: np.random.Generator,
) -> Iterator[str]:
    for document, title in zip_longest(documents, titles):
        if document is None or title is None:
            which = "more" if title is None else "fewer"
            raise ValueError(f"there are {which} documents than rows in the table of titles")
        source, author = title
        share = mixture.shares.get(source, 0.0)
        # drawn for every document, so that leaving an author out moves no other choice
        copies = int(share) + (generator.random() < share % 1)
        names = mixture.only_authors.get(source)
        if names is None or any(name in author for name in names):
            yield from [document] * copies


def _is_share(value: Any) -> bool:
    return type(value) in {int, float} and math.isfinite(value) and value >= 0


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
