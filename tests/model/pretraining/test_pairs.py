"""Statistics, lengths and order of pairs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fillmask_model.encoder.classifier import NEXT_SENTENCE_LABELS
from fillmask_model.pretraining.masking import Masker
from fillmask_model.pretraining.pair_drawing import (
    IS_NEXT,
    NOT_NEXT,
    Pairs,
    draw_pairs,
    longest_sentence,
)
from fillmask_model.pretraining.pair_template import PairTemplate
from fillmask_model.pretraining.pairs import PairBatches, PairRows
from fillmask_model.pretraining.sentences import Sentences

ROW, LONGEST = 32, 29
CLS, SEP, PAD, FIRST_ORDINARY = 1, 2, 0, 10
TEMPLATE = PairTemplate(((CLS,), (SEP,), (SEP,)), ((0,), (0,), (1,)), (0, 1))


def sentences_of(lengths: list[list[int]]) -> Sentences:
    """Return documents with sentences of these lengths.

    All tokens are different.
    """
    flat = [tokens for document in lengths for tokens in document]
    return Sentences(
        np.arange(sum(flat)) + FIRST_ORDINARY,
        np.cumsum([0, *flat]),
        np.cumsum([0, *map(len, lengths)]),
    )


def corpus(documents: int = 400, seed: int = 0) -> Sentences:
    """Return documents with random numbers of sentences and of tokens per sentence."""
    generator = np.random.default_rng(seed)
    return sentences_of(
        [
            generator.integers(1, longest_sentence(ROW) + 1, generator.integers(1, 31)).tolist()
            for _ in range(documents)
        ]
    )


def lengths_of(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lengths (N,) of the first and of the second segments."""
    first, second = (np.diff(part)[:, 0] for part in (pairs.first, pairs.second))
    return first, second


def document_of(sentences: Sentences, token: int) -> int:
    """Return the number, from 0, of the document with the token at this position."""
    ends = sentences.starts[sentences.documents[1:]]
    return int(np.searchsorted(ends, token, side="right"))


def test_labels_have_berts_order() -> None:
    assert NEXT_SENTENCE_LABELS[IS_NEXT] == "is_next"
    assert NEXT_SENTENCE_LABELS[NOT_NEXT] == "not_next"


@pytest.mark.parametrize("sentences", [2, 3, 11, 60])
def test_half_of_the_pairs_are_neighbours(sentences: int) -> None:
    # The share of each label differs from 50 % by less than 3.3 standard errors.
    text = sentences_of([[6] * sentences] * (12_000 // sentences))
    labels = draw_pairs(text, LONGEST, 0, 0).labels
    assert len(labels) > 1_000
    assert abs(labels.mean() - 0.5) < 3.3 * 0.5 / len(labels) ** 0.5


def test_no_segment_crosses_documents() -> None:
    # In an uncut pair with the label is_next, the second segment starts where the first ends.
    text = corpus()
    pairs = draw_pairs(text, LONGEST, 0, 0)
    own, uncut = [], []
    for (a, b), (c, d), label, document in zip(
        pairs.first.tolist(), pairs.second.tolist(), pairs.labels, pairs.documents, strict=True
    ):
        assert document_of(text, a) == document_of(text, b - 1) == document
        assert document_of(text, c) == document_of(text, d - 1)
        assert (document_of(text, c) == document) == (label == IS_NEXT)
        if label == IS_NEXT:
            own.append(b <= c)
            if b - a + d - c < LONGEST:
                uncut.append(b == c)
    assert all(own)
    assert all(uncut)
    assert len(uncut) > 100


def test_an_epoch_uses_all_text_but_cuts_and_last_sentences() -> None:
    # First segments and the segments that follow them contain all other tokens.
    # A run of unused tokens is the last sentence of its document, or it touches a cut segment.
    text = corpus()
    pairs = draw_pairs(text, LONGEST, 0, 0)
    used = np.zeros(len(text.tokens) + 1, np.bool_)
    at_cut = np.zeros_like(used)
    first, second = lengths_of(pairs)
    for (a, b), (c, d), label, tokens in zip(
        pairs.first.tolist(), pairs.second.tolist(), pairs.labels, first + second, strict=True
    ):
        parts = [(a, b), (c, d)] if label == IS_NEXT else [(a, b)]
        for start, end in parts:
            used[start:end] = True
            if tokens == LONGEST:
                at_cut[[start - 1, end]] = True
    alone = 0
    for first_sentence, end_sentence in pairwise(text.documents.tolist()):
        start, last, end = text.starts[[first_sentence, end_sentence - 1, end_sentence]].tolist()
        if not used[last:end].any():
            alone += 1
            end = last
        unused = start + np.flatnonzero(~used[start:end])
        for run in np.split(unused, np.flatnonzero(np.diff(unused) > 1) + 1):
            assert not len(run) or at_cut[[run[0], run[-1]]].any()
    assert 0 < alone < 0.6 * (len(text.documents) - 1)
    assert used.mean() > 0.75


def test_lengths_are_those_of_bert() -> None:
    # One pair in ten has a random target length. The others have the maximum length.
    # Sentences of one token reach every target length exactly.
    text = sentences_of([[1] * 50_000] * 3)
    pairs = draw_pairs(text, LONGEST, 0, 0)
    first, second = lengths_of(pairs)
    total = first + second
    assert total.max() == LONGEST
    assert min(first.min(), second.min()) == 1
    short = (total < LONGEST).mean()
    # a random target is shorter than the longest in 27 of 28 draws
    assert short == pytest.approx(0.1 * 27 / 28, abs=0.01)
    assert set(total.tolist()) == set(range(2, LONGEST + 1))


def test_the_length_does_not_tell_the_label() -> None:
    # The mean lengths of the segments differ by at most half a token between the labels.
    pairs = draw_pairs(corpus(4_000), LONGEST, 0, 0)
    for lengths in lengths_of(pairs):
        by_label = [lengths[pairs.labels == label].mean() for label in (IS_NEXT, NOT_NEXT)]
        assert by_label[0] == pytest.approx(by_label[1], abs=0.5)


def test_long_segments_are_cut_at_both_ends() -> None:
    # A cut shortens the longer segment, as often at its start as at its end.
    text = sentences_of([[16] * 40] * 200)
    pairs = draw_pairs(text, LONGEST, 0, 0)
    first, second = lengths_of(pairs)
    full = first + second == LONGEST
    assert full.mean() > 0.95
    assert set(zip(first[full].tolist(), second[full].tolist(), strict=True)) == {(15, 14)}
    removed = pairs.second[full, 0] % 16
    assert set(removed.tolist()) == {0, 1, 2}
    assert removed.mean() == pytest.approx(1, abs=0.1)


def test_the_second_document_is_any_other_one() -> None:
    # Each document occurs with every other document.
    text = sentences_of([[5] * 300] * 4)
    pairs = draw_pairs(text, LONGEST, 0, 0)
    seen = {
        (int(document), document_of(text, start))
        for document, (start, _) in zip(pairs.documents, pairs.second.tolist(), strict=True)
    }
    assert seen == {(a, b) for a in range(4) for b in range(4)}


def test_seed_and_epoch_decide_the_pairs() -> None:
    text = corpus(50)
    drawn = [draw_pairs(text, LONGEST, *of) for of in ((3, 0), (3, 0), (3, 1), (4, 0))]
    as_sets = [
        {(*a, *b) for a, b in zip(p.first.tolist(), p.second.tolist(), strict=True)} for p in drawn
    ]
    np.testing.assert_array_equal(drawn[0].first, drawn[1].first)
    np.testing.assert_array_equal(drawn[0].second, drawn[1].second)
    for other in as_sets[2:]:
        assert len(as_sets[0] & other) < 0.2 * len(as_sets[0])


def test_inputs_are_padded_rows_with_types() -> None:
    # An input contains the tokens of its two segments.
    text = corpus()
    rows = PairRows(text, TEMPLATE, PAD, ROW)
    pairs = rows.draw(0)
    (batch, *_) = rows.batches(pairs, 64)
    lengths = np.sum(lengths_of(pairs), axis=0)[:64] + 3
    assert batch.input_ids.shape == batch.token_types.shape == (64, lengths.max())
    assert lengths.max() <= ROW
    assert len(set(lengths.tolist())) > 3
    np.testing.assert_array_equal(batch.labels.numpy(), pairs.labels[:64])
    np.testing.assert_array_equal(batch.documents, pairs.documents[:64])
    for row, tokens in enumerate(lengths.tolist()):
        (a, b), (c, d) = pairs.first[row], pairs.second[row]
        ids = batch.input_ids[row].tolist()
        segments = [*text.tokens[a:b], SEP, *text.tokens[c:d]]
        assert ids == [CLS, *segments, SEP] + [PAD] * (lengths.max() - tokens)
        split = b - a + 2
        types = [0] * split + [1] * (tokens - split) + [0] * (lengths.max() - tokens)
        assert batch.token_types[row].tolist() == types
        mask = [1] * tokens + [0] * (lengths.max() - tokens)
        assert batch.attention_mask[row].tolist() == mask


def test_special_tokens_are_never_selected() -> None:
    rows = PairRows(corpus(), TEMPLATE, PAD, ROW)
    masker = Masker(10_000, 3, (PAD, CLS, SEP, 3), select_rate=0.99)
    for batch in rows.batches(rows.draw(0), 64):
        masked = masker(batch.input_ids, torch.Generator().manual_seed(0))
        assert batch.input_ids[masked.selected].min() >= FIRST_ORDINARY
        special = batch.input_ids < FIRST_ORDINARY
        assert torch.equal(masked.input_ids[special], batch.input_ids[special])


def test_batches_take_every_pair_of_an_epoch_once() -> None:
    # A second object computes the same batches in any order, as in a resumed run.
    rows = PairRows(corpus(60), TEMPLATE, PAD, ROW)
    batches = PairBatches(rows, 8, seed=5)
    per_epoch = [len(rows.draw(5, epoch)) // 8 for epoch in range(3)]
    taken = [batches.batch(number) for number in range(sum(per_epoch))]
    first = 0
    for epoch, count in enumerate(per_epoch):
        pairs = rows.draw(5, epoch)
        expected = list(rows.batches(pairs, 8))[:count]
        for batch, wanted in zip(taken[first : first + count], expected, strict=True):
            assert torch.equal(batch.input_ids, wanted.input_ids)
        first += count
    again = PairBatches(rows, 8, seed=5)
    for number in (sum(per_epoch) - 1, 3, per_epoch[0]):
        assert torch.equal(again.batch(number).input_ids, taken[number].input_ids)


@pytest.mark.parametrize("lengths", [[[5] * 40], [[5], [6], [7]], []])
def test_text_without_pairs_is_refused(lengths: list[list[int]]) -> None:
    rows = PairRows(sentences_of(lengths), TEMPLATE, PAD, ROW)
    with pytest.raises(
        ValueError, match=rf"at least two documents.*\(got documents: {len(lengths)}\)"
    ):
        rows.draw(0)


def test_too_few_pairs_for_a_batch_are_refused() -> None:
    rows = PairRows(sentences_of([[5, 5]] * 3), TEMPLATE, PAD, ROW)
    with pytest.raises(ValueError, match=r"at least batch_rows, 64 \(got 3\)"):
        PairBatches(rows, 64, seed=0)
