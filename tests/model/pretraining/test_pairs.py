"""Sentences, pairs of segments, their inputs and batches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from tokenizers.processors import PostProcessor
from tokenizers.trainers import BpeTrainer

from fillmask_model.encoder.classifier import NEXT_SENTENCE_LABELS
from fillmask_model.pretraining.pair_drawing import (
    IS_NEXT,
    NOT_NEXT,
    Sentences,
    draw_pairs,
    longest_sentence,
    read_sentences,
)
from fillmask_model.pretraining.pairs import PairRows, PairTemplate
from fillmask_model.tokenizers.word_pieces import train_word_pieces
from tests.model.samples import verse_tokenizer

PARAGRAPH = 'He met Mr. Smith. "Where is it?" Nobody did... They left!'
SENTENCES = ["He met Mr. Smith.", '"Where is it?"', "Nobody did...", "They left!"]
DOCUMENTS = [PARAGRAPH, f"{PARAGRAPH}\na line without a stop\n{PARAGRAPH}", "One."]
WORD_PIECES = train_word_pieces(DOCUMENTS, vocab_size=200)
ROW, LONGEST = 32, 29
CLS, SEP, PAD, FIRST_ORDINARY = 1, 2, 0, 10
TEMPLATE = PairTemplate(((None, CLS, 0), (0, 0, 0), (None, SEP, 0), (1, 0, 1), (None, SEP, 1)))


def texts_of(sentences: Sentences, tokenizer: Tokenizer = WORD_PIECES) -> list[list[str]]:
    """Return the decoded sentences of each document."""
    decoded = [
        tokenizer.decode(sentences.tokens[a:b].tolist()) for a, b in pairwise(sentences.starts)
    ]
    return [decoded[a:b] for a, b in pairwise(sentences.documents)]


def written(texts: list[str]) -> list[str]:
    """Return the texts after encoding and decoding."""
    encode = WORD_PIECES.encode
    return [WORD_PIECES.decode(encode(text, add_special_tokens=False).ids) for text in texts]


def test_a_sentence_ends_at_a_stop_or_a_line_end() -> None:
    # The stop of a title, such as "Mr.", does not end a sentence.
    assert texts_of(read_sentences([*DOCUMENTS, "\u200b", " "], WORD_PIECES, 99)) == [
        written(SENTENCES),
        written([*SENTENCES, "a line without a stop", *SENTENCES]),
        ["one."],
    ]
    assert texts_of(read_sentences([], WORD_PIECES, 99)) == []


def test_a_byte_level_sentence_starts_with_its_space() -> None:
    byte_level = Tokenizer(models.BPE())
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=400, show_progress=False, initial_alphabet=alphabet)
    byte_level.train_from_iterator(DOCUMENTS, trainer)
    sentences = read_sentences([PARAGRAPH], byte_level, 99)
    assert sentences.tokens.tolist() == byte_level.encode(PARAGRAPH).ids
    assert texts_of(sentences, byte_level) == [
        [SENTENCES[0], *(f" {text}" for text in SENTENCES[1:])]
    ]


def test_long_sentences_are_cut_into_parts() -> None:
    sentences = read_sentences(["one " * 25 + "\n" + "one " * 10], WORD_PIECES, 10)
    one = len(WORD_PIECES.encode("one", add_special_tokens=False).ids)
    assert len(sentences.tokens) == 35 * one
    assert np.diff(sentences.starts).max() == 10
    assert 25 * one in sentences.starts.tolist()


def sentences_of(lengths: list[list[int]]) -> Sentences:
    """Return documents with sentences of these lengths, whose tokens are all different."""
    flat = [tokens for document in lengths for tokens in document]
    return Sentences(
        np.arange(sum(flat)) + FIRST_ORDINARY,
        np.cumsum([0, *flat]),
        np.cumsum([0, *map(len, lengths)]),
    )


def corpus(documents: int = 400) -> Sentences:
    """Return documents with random numbers of sentences and of tokens per sentence."""
    generator = np.random.default_rng(0)
    longest = longest_sentence(ROW)
    return sentences_of(
        [
            generator.integers(1, longest + 1, generator.integers(1, 31)).tolist()
            for _ in range(documents)
        ]
    )


def document_of(sentences: Sentences, token: int) -> int:
    """Return the number, from 0, of the document with the token at this position."""
    ends = sentences.starts[sentences.documents[1:]]
    return int(np.searchsorted(ends, token, side="right"))


def lengths_of(pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lengths (N,) of the first and of the second segments."""
    return pairs[:, 1] - pairs[:, 0], pairs[:, 3] - pairs[:, 2]


def test_labels_have_berts_order() -> None:
    assert NEXT_SENTENCE_LABELS[IS_NEXT] == "is_next"
    assert NEXT_SENTENCE_LABELS[NOT_NEXT] == "not_next"


@pytest.mark.parametrize("sentences", [2, 11])
def test_half_of_the_pairs_are_neighbours(sentences: int) -> None:
    # The share of each label differs from 50 % by less than 3.3 standard errors.
    text = sentences_of([[6] * sentences] * (12_000 // sentences))
    labels = draw_pairs(text, LONGEST, 0, 0)[:, 4]
    assert len(labels) > 1_000
    assert abs(labels.mean() - 0.5) < 3.3 * 0.5 / len(labels) ** 0.5


def test_segments_come_from_one_document_each_and_follow_each_other() -> None:
    # In an uncut pair with the label is_next, the second segment starts where the first ends. The
    # first segments and those that follow them have all tokens but cuts and last sentences.
    text = corpus()
    used = np.zeros(len(text.tokens), np.bool_)
    uncut = 0
    for a, b, c, d, label, document in draw_pairs(text, LONGEST, 0, 0).tolist():
        assert document_of(text, a) == document_of(text, b - 1) == document
        assert document_of(text, c) == document_of(text, d - 1)
        assert (document_of(text, c) == document) == (label == IS_NEXT)
        assert not used[a:b].any()
        used[a:b] = True
        if label == IS_NEXT:
            assert b <= c
            assert not used[c:d].any()
            used[c:d] = True
            if b - a + d - c < LONGEST:
                assert b == c
                uncut += 1
    assert uncut > 100
    assert used.mean() > 0.75


def test_lengths_are_those_of_bert() -> None:
    # One pair in ten has a random target length. The others have the maximum length.
    # Sentences of one token reach every target length exactly.
    total = np.sum(lengths_of(draw_pairs(sentences_of([[1] * 50_000] * 3), LONGEST, 0, 0)), axis=0)
    # a random target is shorter than the longest in 27 of 28 draws
    assert (total < LONGEST).mean() == pytest.approx(0.1 * 27 / 28, abs=0.01)
    assert set(total.tolist()) == set(range(2, LONGEST + 1))


def test_the_length_does_not_tell_the_label() -> None:
    # The mean lengths of the segments differ by at most half a token between the labels.
    pairs = draw_pairs(corpus(4_000), LONGEST, 0, 0)
    for lengths in lengths_of(pairs):
        means = [lengths[pairs[:, 4] == label].mean() for label in (IS_NEXT, NOT_NEXT)]
        assert means[0] == pytest.approx(means[1], abs=0.5)


def test_long_segments_are_cut_at_both_ends() -> None:
    # A cut shortens the longer segment, as often at its start as at its end.
    pairs = draw_pairs(sentences_of([[16] * 40] * 200), LONGEST, 0, 0)
    first, second = lengths_of(pairs)
    full = first + second == LONGEST
    assert full.mean() > 0.95
    assert set(zip(first[full].tolist(), second[full].tolist(), strict=True)) == {(15, 14)}
    removed = pairs[full, 2] % 16
    assert set(removed.tolist()) == {0, 1, 2}
    assert removed.mean() == pytest.approx(1, abs=0.1)


def test_the_second_document_is_any_other_one() -> None:
    text = sentences_of([[5] * 300] * 4)
    pairs = draw_pairs(text, LONGEST, 0, 0)
    seen = {(document, document_of(text, start)) for start, document in pairs[:, [2, 5]].tolist()}
    assert seen == {(a, b) for a in range(4) for b in range(4)}


def test_seed_and_epoch_decide_the_pairs() -> None:
    text = corpus(50)
    first, again, *others = (
        draw_pairs(text, LONGEST, *of).tolist() for of in ((3, 0), (3, 0), (3, 1), (4, 0))
    )
    assert first == again
    for other in others:
        assert len(set(map(tuple, first)) & set(map(tuple, other))) < 0.2 * len(first)


PROCESSORS = {
    "bert": (None, 2),
    "roberta": (processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)), 1),
    "no token at the end": (
        processors.TemplateProcessing(
            single="[CLS] $A",
            pair="[CLS] $A [SEP] $B:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        ),
        2,
    ),
}


@pytest.mark.parametrize(("processor", "types"), PROCESSORS.values(), ids=PROCESSORS)
def test_an_input_is_the_tokenizers_own(processor: PostProcessor | None, types: int) -> None:
    tokenizer = verse_tokenizer()
    if processor is not None:
        tokenizer.post_processor = processor
    template = PairTemplate.from_tokenizer(tokenizer)
    texts = ("the old fox ran", "over the green hill to the sea")
    expected = tokenizer.encode(*texts)
    segments = (tokenizer.encode(text, add_special_tokens=False).ids for text in texts)
    assert template.input_of(*segments) == (expected.ids, expected.type_ids)
    assert template.token_types == types


@pytest.mark.parametrize(
    ("pair", "special"),
    [
        ("$A $B:1", []),
        ("$A [SEP] $B:1 [SEP]:1", [("[SEP]", 3)]),
        ("[CLS] $A $B:1", [("[CLS]", 2)]),
    ],
)
def test_a_tokenizer_without_separators_is_refused(
    pair: str, special: list[tuple[str, int]]
) -> None:
    tokenizer = verse_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A", pair=pair, special_tokens=special
    )
    with pytest.raises(ValueError, match="must have a template for pairs"):
        PairTemplate.from_tokenizer(tokenizer)


def pair_rows(text: Sentences, seed: int = 5) -> PairRows:
    return PairRows(text, TEMPLATE, PAD, ROW, seed)


def test_batches_are_padded_inputs_of_every_pair_of_an_epoch_once() -> None:
    # A second object computes the same batches in any order, as in a resumed run.
    text = corpus(60)
    rows, again = pair_rows(text), pair_rows(text)
    drawn = [draw_pairs(text, LONGEST, 5, epoch) for epoch in (0, 1)]
    expected = [pair for pairs in drawn for pair in pairs[: len(pairs) // 8 * 8].tolist()]
    taken = [rows.batch(number, 8) for number in range(len(expected) // 8)]
    for number, batch in enumerate(taken):
        width = batch.input_ids.shape[1]
        assert width <= ROW
        for row, (a, b, c, d, label, _) in enumerate(expected[8 * number : 8 * number + 8]):
            padding = [PAD] * (width - 3 - (b - a) - (d - c))
            ids = [CLS, *text.tokens[a:b], SEP, *text.tokens[c:d], SEP]
            assert batch.input_ids[row].tolist() == ids + padding
            types = [0] * (b - a + 2) + [1] * (d - c + 1)
            assert batch.token_types[row].tolist() == types + padding
            assert batch.attention_mask[row].tolist() == [1] * len(ids) + padding
            assert batch.labels[row] == label
    for number in (len(taken) - 1, 3, len(drawn[0]) // 8):
        assert torch.equal(again.batch(number, 8).input_ids, taken[number].input_ids)


@pytest.mark.parametrize("lengths", [[[5] * 40], [[5], [6], [7]], []])
def test_text_without_pairs_is_refused(lengths: list[list[int]]) -> None:
    message = rf"at least two documents.*\(got documents: {len(lengths)}\)"
    with pytest.raises(ValueError, match=message):
        pair_rows(sentences_of(lengths))


def test_too_few_pairs_for_a_batch_are_refused() -> None:
    rows = pair_rows(sentences_of([[5, 5]] * 3))
    with pytest.raises(ValueError, match=r"at least batch_rows, 64 \(got 3\)"):
        rows.batch(0, 64)
