"""Selection and batches of short texts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from fillmask_model.pretraining.loop import Pretraining
from fillmask_model.pretraining.short_texts import LONGEST_TOKENS, ShortTexts, short_rows
from fillmask_model.tokenizers.special_tokens import SpecialTokens
from fillmask_model.tokenizers.word_pieces import train_word_pieces
from tests.model.samples import ROW_TOKENS, VERSES, random_ids

PARAGRAPH = (
    'He met Mr. Smith of St. Ives. "Where is it?" "(Not here.)" Did J. Cole know? '
    "Nobody did... They left!"
)
SENTENCES = [
    "He met Mr. Smith of St. Ives.",
    '"Where is it?"',
    '"(Not here.)"',
    "Did J. Cole know?",
    "Nobody did...",
    "They left!",
]
TOKENIZER = train_word_pieces([PARAGRAPH, *VERSES], vocab_size=400)
SPECIAL = SpecialTokens.from_tokenizer(TOKENIZER)


def cut(document: str, seed: int, tokenizer: Tokenizer = TOKENIZER) -> list[str]:
    """Return the short texts of a document, as decoded by the tokenizer."""
    rows = short_rows([document], tokenizer, SPECIAL, seed)
    return [tokenizer.decode(row[1:-1].tolist()) for part in rows.values() for row in part]


def written(text: str) -> str:
    """Return the text after encoding and decoding."""
    return TOKENIZER.decode(TOKENIZER.encode(text, add_special_tokens=False).ids)


def test_texts_are_one_to_three_sentences_in_a_row() -> None:
    # Titles and initials do not end a sentence.
    runs = {
        written(" ".join(SENTENCES[start : start + count]))
        for start in range(len(SENTENCES))
        for count in (1, 2, 3)
    }
    seen = {text for seed in range(200) for text in cut(PARAGRAPH, seed)}
    assert seen <= runs
    assert seen == {run for run in runs if len(TOKENIZER.encode(run).ids) >= 6}
    assert written("They left!") not in seen


def test_lines_are_texts_of_their_own() -> None:
    # No text spans the end of a line.
    lines = [line for verse in VERSES for line in verse.splitlines()]
    seen = {text for seed in range(20) for text in cut("\n".join(VERSES), seed)}
    assert seen <= {written(line) for line in lines}


def test_rows_are_framed_and_of_their_length() -> None:
    # A row is `[CLS] text [SEP]`, from 6 tokens to the allowed maximum.
    documents = [" ".join(["the"] * count) for count in range(1, 90)]
    rows = short_rows(documents, TOKENIZER, SPECIAL, 0)
    assert sorted(rows) == list(range(6, LONGEST_TOKENS + 1))
    the = TOKENIZER.token_to_id("the")
    for tokens, part in rows.items():
        assert part.dtype == np.int32
        assert part.tolist() == [[SPECIAL.cls, *[the] * (tokens - 2), SPECIAL.sep]]
    assert max(short_rows(documents, TOKENIZER, SPECIAL, 0, longest_tokens=9)) == 9
    with pytest.raises(ValueError, match="texts of 6 to 64 tokens"):
        short_rows(documents[-1:], TOKENIZER, SPECIAL, 0)


def groups() -> dict[int, NDArray[np.int32]]:
    """Return texts of three lengths.

    The 100 texts of 6 tokens fill several batches.
    """
    return {
        tokens: random_ids((count, tokens), 10_000, seed=tokens).int().numpy()
        for tokens, count in ((6, 100), (17, 9), (40, 3))
    }


def test_an_epoch_has_every_text_once_in_its_own_order() -> None:
    # All texts of a batch have one length.
    texts = ShortTexts(groups(), batch_tokens=32, seed=3)
    sizes = {6: [5] * 20, 17: [1] * 9, 40: [1] * 3}
    count = sum(map(len, sizes.values()))
    epochs = [[texts.batch(epoch * count + i) for i in range(count)] for epoch in (0, 1)]
    for epoch in epochs:
        taken = Counter(tuple(row) for batch in epoch for row in batch.tolist())
        assert taken == Counter(tuple(row) for part in groups().values() for row in part.tolist())
        for tokens, expected in sizes.items():
            assert [len(batch) for batch in epoch if batch.shape[1] == tokens] == expected
    orders = [[batch.tolist() for batch in epoch] for epoch in epochs]
    assert orders[0] != orders[1]
    again = ShortTexts(groups(), batch_tokens=32, seed=3)
    assert again.batch(count + 2).tolist() == orders[1][2]
    assert ShortTexts(groups(), batch_tokens=32, seed=4).batch(2).tolist() != orders[0][2]


@pytest.mark.parametrize(
    ("share", "short"), [(0.0, []), (0.25, [3, 7, 11]), (0.5, [1, 3, 5, 7, 9, 11])]
)
def test_passes_of_short_texts_come_at_even_distances(
    pretraining: Any, share: float, short: list[int]
) -> None:
    # Short and packed passes each take their batches in order, without gaps.
    run: Pretraining = pretraining(short_share=share)
    run.batches.short_texts = ShortTexts(groups(), batch_tokens=32, seed=0)
    passes = [run.batches.batch(number)[0] for number in range(12)]
    assert [n for n, rows in enumerate(passes) if rows.shape[1] != ROW_TOKENS] == short
    twin = ShortTexts(groups(), batch_tokens=32, seed=0)
    for place, number in enumerate(short):
        assert torch.equal(passes[number], torch.from_numpy(twin.batch(place)).long())
    packed = [rows for n, rows in enumerate(passes) if n not in short]
    alone = pretraining(short_share=0.0)
    for place, rows in enumerate(packed):
        assert torch.equal(rows, alone.batches.batch(place)[0])
