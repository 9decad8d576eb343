"""Queries with a document that answers each of them, and batches of these pairs.

Shapes: N pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from fillmask.tables.delimited import DEFAULT, Dialect
from fillmask_model.fine_tuning.tables import (
    Dataset,
    Example,
    RowParser,
    check_columns,
    read_table,
    text_cell,
)
from fillmask_model.fine_tuning.tokens import (
    Batch,
    OnLongText,
    TokenizedTexts,
    describe_truncated_texts,
    make_batch,
    tokenize,
)


@dataclass(frozen=True, slots=True)
class PairFile:
    """Pairs of a file.

    Attributes:
        queries, documents: the texts in file order.
    """

    queries: Dataset
    documents: Dataset


@dataclass(frozen=True, slots=True, eq=False)
class PairTokens:
    """Token ids of pairs.

    Attributes:
        queries, documents: token ids of the texts.
        query_ids, document_ids: (N,) int64, equal for equal texts.
    """

    queries: TokenizedTexts
    documents: TokenizedTexts
    query_ids: NDArray[np.int64]
    document_ids: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True, slots=True, eq=False)
class PairBatch:
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
) -> PairFile:
    """Read the pairs of a CSV, TSV or JSONL file.

    Raises:
        ValueError: the format, a column or a text is missing or invalid.
    """
    columns = (query_column, document_column)

    def parser_of(names: list[str]) -> tuple[tuple[str, ...], RowParser[tuple[Example, Example]]]:
        check_columns(
            path,
            names,
            (("--query-column", query_column), ("--document-column", document_column)),
        )
        return columns, lambda number, row: (
            Example(number, text_cell(row, query_column)),
            Example(number, text_cell(row, document_column)),
        )

    pairs, _ = read_table(path, dialect, query_column, parser_of)
    queries, documents = zip(*pairs, strict=True)
    return PairFile(Dataset(path, queries), Dataset(path, documents))


def tokenize_pairs(
    pairs: PairFile,
    tokenizer: Tokenizer,
    *,
    max_tokens: int,
    type_vocab_size: int,
    on_long_text: OnLongText,
) -> tuple[PairTokens, list[str]]:
    """Tokenize pairs.

    The arguments are those of `tokenize`.

    Returns:
        The pairs, and notes for the user about truncated texts.

    Raises:
        ValueError: a text is invalid.
    """
    sides = (pairs.queries, pairs.documents)
    queries, documents = (
        tokenize(
            side,
            tokenizer,
            max_tokens=max_tokens,
            type_vocab_size=type_vocab_size,
            on_long_text=on_long_text,
        )
        for side in sides
    )
    notes = [
        note
        for side, texts in zip(sides, (queries, documents), strict=True)
        for note in describe_truncated_texts(side, texts)
    ]
    query_ids, document_ids = (
        np.unique([one.text for one in side.examples], return_inverse=True)[1] for side in sides
    )
    return PairTokens(queries, documents, query_ids, document_ids), notes


def shuffled_pairs(
    pairs: PairTokens, batch_rows: int, seed: int, epoch: int
) -> Iterator[PairBatch]:
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
