"""Files of pairs and their batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fillmask_model.sparse.pairs import PairFile, read_pairs, shuffled_pairs
from tests.model.classification.samples import write_rows
from tests.model.sparse.samples import pairs_of, tokens_of, word_tokenizer


def texts_of(pairs: PairFile) -> list[tuple[str, str]]:
    sides = (pairs.queries.examples, pairs.documents.examples)
    return [(query.text, document.text) for query, document in zip(*sides, strict=True)]


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv", "pairs.jsonl"])
def test_pairs_are_read_from_two_columns(tmp_path: Path, name: str) -> None:
    rows = [
        {"id": "1", "query": "cat", "document": "katze"},
        {"id": "2", "query": "dog", "document": "hund, der"},
    ]
    read = read_pairs(write_rows(tmp_path / name, rows), "query", "document")
    assert texts_of(read) == [("cat", "katze"), ("dog", "hund, der")]
    other = read_pairs(tmp_path / name, "document", "query")
    assert texts_of(other) == [("katze", "cat"), ("hund, der", "dog")]


def test_a_missing_column_names_its_flag(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "pairs.csv", [{"question": "cat", "document": "katze"}])
    with pytest.raises(ValueError, match=r"no column 'query' \(got question, document\); set --qu"):
        read_pairs(path, "query", "document")


def test_a_blank_text_names_its_row(tmp_path: Path) -> None:
    rows = [{"query": "cat", "document": "katze"}, {"query": "dog", "document": " "}]
    path = write_rows(tmp_path / "pairs.csv", rows)
    with pytest.raises(ValueError, match=r"pairs.csv, row 2: document must not be blank"):
        read_pairs(path, "query", "document")


def test_an_epoch_has_each_pair_at_most_once_in_another_order() -> None:
    tokens = tokens_of(pairs_of(70), word_tokenizer())
    epochs = [
        np.concatenate([one.queries.rows for one in shuffled_pairs(tokens, 32, 0, epoch)])
        for epoch in (1, 2, 1)
    ]
    assert len(epochs[0]) == len(set(epochs[0].tolist())) == 64
    assert np.array_equal(epochs[0], epochs[2])
    assert not np.array_equal(epochs[0], epochs[1])


def test_pairs_with_a_common_text_are_no_wrong_answers() -> None:
    pairs = pairs_of(3)
    examples = pairs.documents.examples
    shared = PairFile(pairs.queries, type(pairs.documents)(Path(), (*examples[:2], examples[0])))
    [batch] = shuffled_pairs(tokens_of(shared, word_tokenizer()), 3, 0, 1)
    places = batch.queries.rows.tolist()
    for row, first in enumerate(places):
        for column, second in enumerate(places):
            assert batch.equal[row, column] == (first == second or {first, second} == {0, 2})
    assert np.array_equal(batch.queries.rows, batch.documents.rows)
