"""Mixture of a corpus's documents for training, by source and author.

A corpus has a table with one row per document in file order. The columns are source, title, author
and bytes, separated by tabs. A mixture sets the share of each source and can restrict a source to
some authors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_model.documents import open_text
from fillmask_model.files import read_object

COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Mixture:
    """Shares of the sources in a training corpus.

    Attributes:
        shares: expected number of copies of each document, by source. A share of 0.1 selects
            each document with a probability of 0.1. A share of 2 selects each document twice. A
            source without an entry has the share 0.
        only_authors: allowed authors by source. The author column of a selected document contains
            one of the names.
        seed: seed of the selection and of the order.
    """

    shares: dict[str, float]
    only_authors: dict[str, tuple[str, ...]]
    seed: int

    @classmethod
    def read(cls, path: Path) -> Mixture:
        """Read a mixture from JSON.

        Raises:
            ValueError: the file is not JSON, or a field is missing, unknown or invalid.
        """
        fields = read_object(path)
        if set(fields) != {"shares", "only_authors", "seed"}:
            raise ValueError(
                f"{path} must have exactly the fields shares, only_authors and seed "
                f"(got {fields!r})"
            )
        shares, only, seed = fields["shares"], fields["only_authors"], fields["seed"]
        if not isinstance(shares, dict) or not all(map(_is_share, shares.values())):
            raise ValueError(
                f"{path}: shares must map sources to finite numbers of at least 0 (got {shares!r})"
            )
        if not isinstance(only, dict) or not all(map(_is_names, only.values())):
            raise ValueError(
                f"{path}: only_authors must map sources to lists of names (got {only!r})"
            )
        if unknown := sorted(set(only) - set(shares)):
            raise ValueError(
                f"{path}: shares must contain the sources of only_authors "
                f"(missing: {', '.join(unknown)})"
            )
        if type(seed) is not int or seed < 0:
            raise ValueError(f"{path}: seed must be a whole number of at least 0 (got {seed!r})")
        return cls(shares, {source: tuple(names) for source, names in only.items()}, seed)


def read_document_sources(path: Path) -> list[tuple[str, str]]:
    """Read the source and the author of each document, in file order.

    Raises:
        ValueError: a line does not have four columns.
    """
    with open_text(path) as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    if wrong := [number for number, row in enumerate(rows, 1) if len(row) != COLUMNS]:
        count = len(rows[wrong[0] - 1])
        raise ValueError(f"{path}, line {wrong[0]} must have {COLUMNS} columns (got {count})")
    return [(row[0], row[2]) for row in rows]


def mix(documents: Iterable[str], titles: list[tuple[str, str]], mixture: Mixture) -> list[str]:
    """Select documents and return them in a seeded random order.

    Raises:
        ValueError: the table has fewer or more rows than the corpus has documents.
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
            which = "fewer" if title is None else "more"
            raise ValueError(
                f"the table has {which} rows than the corpus has documents; "
                "give the corpus's own table with --titles"
            )
        source, author = title
        share = mixture.shares.get(source, 0.0)
        # every document needs a draw, so that a change of authors changes no other draw
        copies = int(share) + (generator.random() < share % 1)
        names = mixture.only_authors.get(source)
        if names is None or any(name in author for name in names):
            yield from [document] * copies


def _is_share(value: Any) -> bool:
    return type(value) in {int, float} and math.isfinite(value) and value >= 0


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
