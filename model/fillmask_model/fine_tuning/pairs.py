"""Queries with a document that answers each of them. Shapes: N pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask.tables.delimited import DEFAULT, Dialect
from fillmask_model.fine_tuning.tables import Dataset, Example, open_table, parse_rows, text_cell
from fillmask_model.fine_tuning.tokens import Batch, TokenizedTexts, make_batch


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Token ids of pairs.

    Attributes:
        query_ids, document_ids: (N,) int64, equal for equal texts.
    """

    queries: TokenizedTexts
    documents: TokenizedTexts
    query_ids: NDArray[np.int64]
    document_ids: NDArray[np.int64]

    @classmethod
    def of(
        cls, queries: Dataset, documents: Dataset, tokenize: Callable[[Dataset], TokenizedTexts]
    ) -> Pairs:
        ids = [
            np.unique([one.text for one in side.examples], return_inverse=True)[1]
            for side in (queries, documents)
        ]
        return cls(tokenize(queries), tokenize(documents), ids[0], ids[1])

    def __len__(self) -> int:
        return len(self.queries)


class PairBatch(NamedTuple):
    """Pairs of a training step.

    Attributes:
        equal: (N, N) boolean, True if the document of a column is no wrong answer to the query of a
            row, because the two pairs share a text.
    """

    queries: Batch
    documents: Batch
    equal: Tensor


def read_pairs(
    path: Path, query_column: str, document_column: str, dialect: Dialect = DEFAULT
) -> tuple[Dataset, Dataset]:
    """Read the queries and the documents of a file."""
    flags = {"--query-column": query_column, "--document-column": document_column}
    _, rows = open_table(path, dialect, flags)

    def parse(number: int, row: dict[str, Any]) -> tuple[Example, Example]:
        query, document = (text_cell(row, column) for column in flags.values())
        return Example(number, query), Example(number, document)

    queries, documents = zip(*parse_rows(path, rows, parse), strict=True)
    return Dataset(path, queries), Dataset(path, documents)


def shuffled_pairs(pairs: Pairs, batch_rows: int, seed: int, epoch: int) -> Iterator[PairBatch]:
    """Yield the batches of an epoch in a seeded random order.

    The last pairs of an order that fill no batch wait for the next epoch.
    """
    order = np.random.default_rng([seed, epoch]).permutation(len(pairs))
    for start in range(0, len(order) - batch_rows + 1, batch_rows):
        rows = order[start : start + batch_rows]
        same = [
            ids[rows][:, None] == ids[rows][None] for ids in (pairs.query_ids, pairs.document_ids)
        ]
        yield PairBatch(
            make_batch(pairs.queries, rows),
            make_batch(pairs.documents, rows),
            torch.from_numpy(same[0] | same[1]),
        )
