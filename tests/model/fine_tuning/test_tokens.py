"""Token ids of texts and pairs, long texts, and batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, processors

from fillmask_model.fine_tuning.tables import Dataset
from fillmask_model.fine_tuning.tokens import (
    TokenizedTexts,
    make_batch,
    shuffled_batches,
    sorted_batches,
    tokenize,
)
from tests.model.classification.samples import dataset_of

SETTINGS: dict[str, Any] = {"max_tokens": 16, "type_vocab_size": 2, "on_long_text": "error"}


def pairs(*texts: tuple[str, str]) -> Dataset:
    dataset = dataset_of([(first, "a") for first, _ in texts], "pairs.csv")
    both = zip(dataset.examples, texts, strict=True)
    return replace(dataset, examples=tuple(replace(e, text_pair=text[1]) for e, text in both))


def tokens_of(tokenizer: Tokenizer, texts: TokenizedTexts, row: int) -> str:
    """Return the tokens of a row, separated by spaces."""
    return " ".join(map(str, map(tokenizer.id_to_token, texts.ids[row].tolist())))


def test_single_texts_and_pairs(tokenizer: Tokenizer) -> None:
    single = tokenize(dataset_of([("the cat", "a")]), tokenizer, **SETTINGS)
    assert tokens_of(tokenizer, single, 0) == "[CLS] the cat [SEP]"
    both = tokenize(pairs(("the cat", "sat on")), tokenizer, **SETTINGS)
    assert tokens_of(tokenizer, both, 0) == "[CLS] the cat [SEP] sat on [SEP]"
    assert both.types is not None
    assert both.types[0].tolist() == [0, 0, 0, 0, 1, 1, 1]
    untyped = tokenize(pairs(("the", "cat")), tokenizer, **(SETTINGS | {"type_vocab_size": 1}))
    assert untyped.types is None


def test_long_texts_are_counted(tokenizer: Tokenizer) -> None:
    dataset = dataset_of([("cat", "a"), ("cat " * 15, "a"), ("dog " * 14, "a"), ("dog " * 99, "a")])
    with pytest.raises(
        ValueError, match=r"at most 16 tokens \(got 17; too many tokens in 2 of 4 rows\)"
    ):
        tokenize(dataset, tokenizer, **SETTINGS)


def test_long_texts_can_be_cut(tokenizer: Tokenizer) -> None:
    cut = SETTINGS | {"on_long_text": "truncate", "max_tokens": 5}
    texts = tokenize(dataset_of([("cat " * 9, "a"), ("the dog", "a")]), tokenizer, **cut)
    assert tokens_of(tokenizer, texts, 0) == "[CLS] cat cat cat [SEP]"
    assert tokens_of(tokenizer, texts, 1) == "[CLS] the dog [SEP]"
    # the longer text of a pair loses tokens
    both = tokenize(pairs(("cat " * 9, "dog")), tokenizer, **cut)
    assert tokens_of(tokenizer, both, 0) == "[CLS] cat [SEP] dog [SEP]"
    assert tokenizer.truncation is None


def test_special_tokens_and_empty_texts_are_rejected(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match=r"data.csv, row 2: \[SEP\] is a special token"):
        tokenize(dataset_of([("cat", "a"), ("cat [SEP] dog", "a")]), tokenizer, **SETTINGS)
    with pytest.raises(ValueError, match=r"data.csv, row 1 has no tokens; write at least one word"):
        tokenize(dataset_of([("\u200b", "a")]), tokenizer, **SETTINGS)
    masked = tokenize(dataset_of([("the [MASK]", "a")]), tokenizer, **SETTINGS)
    assert tokens_of(tokenizer, masked, 0) == "[CLS] the [MASK] [SEP]"


def test_a_tokenizer_without_a_form_for_pairs_is_rejected(tokenizer: Tokenizer) -> None:
    joining = Tokenizer.from_str(tokenizer.to_str())
    joining.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A $B [SEP]",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")],
    )
    with pytest.raises(ValueError, match=r"must separate the pairs of pairs.csv by a special"):
        tokenize(pairs(("the cat", "sat on")), joining, **SETTINGS)


def lengths(*tokens: int) -> TokenizedTexts:
    """Return texts with these numbers of tokens.

    All ids of a text equal the number of its row, from 1.
    """
    ids = [np.full(n, row + 1, np.int32) for row, n in enumerate(tokens)]
    return TokenizedTexts(ids, [np.full_like(one, 1) for one in ids], pad=0, max_tokens=17)


def test_padding_is_masked_and_reaches_a_multiple_of_8() -> None:
    batch = make_batch(lengths(3, 9, 10), np.array([2, 0]))
    assert batch.input_ids.tolist() == [[3] * 10 + [0] * 6, [1] * 3 + [0] * 13]
    assert batch.attention_mask is not None
    assert batch.attention_mask.tolist() == [[1] * 10 + [0] * 6, [1] * 3 + [0] * 13]
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == batch.attention_mask.tolist()


def test_padding_never_exceeds_the_encoder() -> None:
    assert make_batch(lengths(3, 17), np.array([0, 1])).input_ids.shape == (2, 17)


def test_texts_of_equal_length_have_no_padding() -> None:
    batch = make_batch(lengths(5, 5), np.array([0, 1]))
    assert batch.input_ids.shape == (2, 5)
    assert batch.attention_mask is None


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
