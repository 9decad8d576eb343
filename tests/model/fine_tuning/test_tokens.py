"""Token ids of texts and pairs, long texts, and batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, processors

from fillmask_model.fine_tuning.tables import Dataset, Example
from fillmask_model.fine_tuning.tokens import (
    TokenizedTexts,
    make_batch,
    shuffled_batches,
    sorted_batches,
)
from tests.model.fine_tuning.samples import TOKENIZER, dataset_of, tokens_of


def pairs(*texts: tuple[str, str]) -> Dataset:
    return Dataset(dataset_of([]).path, tuple(Example(n, *one) for n, one in enumerate(texts, 1)))


def tokenized(dataset: Dataset, **changes: Any) -> list[str]:
    """Return the tokens of each row, separated by spaces."""
    ids = tokens_of(dataset, **changes).ids
    return [" ".join(map(str, map(TOKENIZER.id_to_token, one.tolist()))) for one in ids]


def test_single_texts_and_pairs() -> None:
    assert tokenized(dataset_of([("the cat", "a")])) == ["[CLS] the cat [SEP]"]
    both = pairs(("the cat", "red and blue"))
    assert tokenized(both) == ["[CLS] the cat [SEP] red and blue [SEP]"]
    types = tokens_of(both).types
    assert types is not None
    assert types[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert tokens_of(both, type_vocab_size=1).types is None


def test_long_texts_are_counted_or_cut() -> None:
    texts = ["cat", "cat " * 15, "dog " * 14, "dog " * 99]
    dataset = dataset_of([(text, "a") for text in texts])
    with pytest.raises(ValueError, match=r"row 2 must have at most 16 tokens \(got 17; too many t"):
        tokens_of(dataset)
    notes: list[str] = []
    cut: dict[str, Any] = {"truncate": True, "note": notes.append}
    assert [len(ids) for ids in tokens_of(dataset, **cut).ids] == [3, 16, 16, 16]
    assert notes == ["rows of data.csv truncated to 16 tokens: 2 of 4"]
    # the longer text of a pair loses tokens
    long = pairs(("cat " * 9, "dog"), ("cat", "dog " * 9))
    assert tokenized(long, max_tokens=5, **cut) == ["[CLS] cat [SEP] dog [SEP]"] * 2
    assert TOKENIZER.truncation is None


def test_special_tokens_and_empty_texts_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"data.csv, row 2: \[SEP\] is a special token"):
        tokens_of(dataset_of([("cat", "a"), ("cat [SEP] dog", "a")]))
    with pytest.raises(ValueError, match=r"data.csv, row 1 has no tokens; write at least one word"):
        tokens_of(dataset_of([("\u200b", "a")]))
    assert tokenized(dataset_of([("the [MASK] zebra", "a")])) == ["[CLS] the [MASK] [UNK] [SEP]"]


def test_a_tokenizer_without_a_form_for_pairs_is_rejected() -> None:
    joining = Tokenizer.from_str(TOKENIZER.to_str())
    joining.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A $B [SEP]",
        special_tokens=[(t, TOKENIZER.token_to_id(t)) for t in ("[CLS]", "[SEP]")],
    )
    with pytest.raises(ValueError, match=r"must separate the pairs of data.csv by a special"):
        tokens_of(pairs(("the cat", "red")), tokenizer=joining)


def lengths(*tokens: int) -> TokenizedTexts:
    """Return texts with these numbers of tokens, whose ids are the number of the row, from 1."""
    ids = [np.full(n, row + 1, np.int32) for row, n in enumerate(tokens)]
    return TokenizedTexts(ids, [np.full_like(one, 1) for one in ids], pad=0, max_tokens=17)


def test_padding_is_masked_and_reaches_a_multiple_of_8() -> None:
    batch = make_batch(lengths(3, 9, 10), np.array([2, 0]))
    assert batch.input_ids.tolist() == [[3] * 10 + [0] * 6, [1] * 3 + [0] * 13]
    assert batch.attention_mask is not None
    assert batch.attention_mask.tolist() == [[1] * 10 + [0] * 6, [1] * 3 + [0] * 13]
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == batch.attention_mask.tolist()
    # it never exceeds the encoder, and equal lengths need none
    assert make_batch(lengths(3, 17), np.array([0, 1])).input_ids.shape == (2, 17)
    equal = make_batch(lengths(5, 5), np.array([0, 1]))
    assert (equal.input_ids.shape, equal.attention_mask) == ((2, 5), None)


def test_an_epoch_has_each_text_once_in_its_own_order() -> None:
    generator = np.random.default_rng(0)
    texts = lengths(*generator.integers(1, 17, 333))
    orders = []
    for seed, epoch in ((0, 1), (0, 2), (1, 1), (0, 1)):
        batches = list(shuffled_batches(texts, 4, seed, epoch))
        rows = np.concatenate([batch.rows for batch in batches])
        assert sorted(rows) == list(range(333))
        orders.append(rows.tolist())
        # at random, four of these texts need 30 % padding
        real = sum(texts.lengths())
        longest = sum(len(b.rows) * max(texts.lengths()[b.rows]) for b in batches)
        assert longest < 1.1 * real
    assert orders[0] == orders[3]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]


def test_sorted_batches_have_ascending_lengths() -> None:
    texts = lengths(5, 2, 9, 1, 1)
    assert [b.rows.tolist() for b in sorted_batches(texts, 2)] == [[3, 4], [1, 0], [2]]
