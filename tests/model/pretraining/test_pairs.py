"""Sentences, pairs of segments and their inputs."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import processors
from tokenizers.processors import PostProcessor

from fillmask_model.encoder.classifier import NEXT_SENTENCE_LABELS
from fillmask_model.pretraining.pairs import (
    IS_NEXT,
    NOT_NEXT,
    Bounds,
    PairTemplate,
    draw_pairs,
    make_pairs,
    read_sentences,
)
from fillmask_model.tokenizers.special_tokens import SpecialTokens
from fillmask_model.tokenizers.word_pieces import train_word_pieces
from tests.model.samples import VERSES, verse_tokenizer

PARAGRAPH = 'He met Mr. Smith. "Where is it?" Nobody did... They left!'
SENTENCES = ["He met Mr. Smith.", '"Where is it?"', "Nobody did...", "They left!"]
DOCUMENTS = [PARAGRAPH, f"{PARAGRAPH}\na line without a stop\n{PARAGRAPH}", "One."]
WORD_PIECES = train_word_pieces(DOCUMENTS, vocab_size=200)
LONGEST = 29  # tokens of both segments


def texts_of(documents: list[str]) -> list[list[str]]:
    """Return the decoded sentences of each document."""
    tokens, sentences = read_sentences(documents, WORD_PIECES, 99)
    return [
        [WORD_PIECES.decode(tokens[a:b].tolist()) for a, b in pairwise(bounds)]
        for bounds in sentences
    ]


def written(texts: list[str]) -> list[str]:
    """Return the texts after encoding and decoding."""
    encode = WORD_PIECES.encode
    return [WORD_PIECES.decode(encode(text, add_special_tokens=False).ids) for text in texts]


def test_a_sentence_ends_at_a_stop_or_a_line_end() -> None:
    # The stop of a title, such as "Mr.", does not end a sentence.
    assert texts_of([*DOCUMENTS, "\u200b", " "]) == [
        written(SENTENCES),
        written([*SENTENCES, "a line without a stop", *SENTENCES]),
        ["one."],
    ]
    assert texts_of([]) == []


def test_long_sentences_are_cut_into_parts() -> None:
    tokens, [bounds] = read_sentences(["one " * 25 + "\n" + "one " * 10], WORD_PIECES, 10)
    one = len(WORD_PIECES.encode("one", add_special_tokens=False).ids)
    assert len(tokens) == bounds[-1] == 35 * one
    assert np.diff(bounds).max() == 10
    assert 25 * one in bounds


def sentences_of(lengths: list[list[int]]) -> list[Bounds]:
    """Return documents with sentences of these lengths."""
    ends = np.cumsum([0, *map(sum, lengths)])
    return [first + np.cumsum([0, *one]) for first, one in zip(ends, lengths, strict=False)]


def corpus(documents: int = 400) -> list[Bounds]:
    """Return documents with random numbers of sentences and of tokens per sentence."""
    generator = np.random.default_rng(0)
    return sentences_of(
        [generator.integers(1, 17, generator.integers(1, 31)).tolist() for _ in range(documents)]
    )


def document_of(sentences: list[Bounds], token: int) -> int:
    """Return the number, from 0, of the document with the token at this position."""
    return int(np.searchsorted([bounds[-1] for bounds in sentences], token, side="right"))


def lengths_of(pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lengths (N,) of the first and of the second segments."""
    return pairs[:, 1] - pairs[:, 0], pairs[:, 3] - pairs[:, 2]


@pytest.mark.parametrize("sentences", [2, 11])
def test_half_of_the_pairs_are_neighbours(sentences: int) -> None:
    # The share of each label differs from 50 % by less than 3.3 standard errors.
    assert (NEXT_SENTENCE_LABELS[IS_NEXT], NEXT_SENTENCE_LABELS[NOT_NEXT]) == (
        *("is_next", "not_next"),
    )
    labels = draw_pairs(sentences_of([[6] * sentences] * (12_000 // sentences)), LONGEST, 0)[:, 4]
    assert len(labels) > 1_000
    assert abs(labels.mean() - 0.5) < 3.3 * 0.5 / len(labels) ** 0.5


def test_segments_come_from_one_document_each_and_follow_each_other() -> None:
    # In an uncut pair with the label is_next, the second segment starts where the first ends. The
    # first segments and those that follow them have all tokens but cuts and last sentences.
    text = corpus()
    used = np.zeros(text[-1][-1], np.bool_)
    uncut = 0
    for a, b, c, d, label in draw_pairs(text, LONGEST, 0).tolist():
        document = document_of(text, a)
        assert document_of(text, b - 1) == document
        assert document_of(text, c) == document_of(text, d - 1)
        assert (document_of(text, c) == document) == (label == IS_NEXT)
        for first, last in ((a, b), (c, d)) if label == IS_NEXT else ((a, b),):
            assert not used[first:last].any()
            used[first:last] = True
        if label == IS_NEXT:
            assert b <= c
            if b - a + d - c < LONGEST:
                assert b == c
                uncut += 1
    assert uncut > 100
    assert used.mean() > 0.75


def test_lengths_are_those_of_bert_and_do_not_tell_the_label() -> None:
    # One pair in ten has a random target length. The others have the maximum length.
    # Sentences of one token reach every target length exactly.
    total = np.sum(lengths_of(draw_pairs(sentences_of([[1] * 50_000] * 3), LONGEST, 0)), axis=0)
    # a random target is shorter than the longest in 27 of 28 draws
    assert (total < LONGEST).mean() == pytest.approx(0.1 * 27 / 28, abs=0.01)
    assert set(total.tolist()) == set(range(2, LONGEST + 1))
    # the mean lengths of the segments differ by at most half a token between the labels
    pairs = draw_pairs(corpus(4_000), LONGEST, 0)
    for lengths in lengths_of(pairs):
        means = [lengths[pairs[:, 4] == label].mean() for label in (IS_NEXT, NOT_NEXT)]
        assert means[0] == pytest.approx(means[1], abs=0.5)


def test_long_segments_are_cut_at_both_ends() -> None:
    # A cut shortens the longer segment, as often at its start as at its end.
    pairs = draw_pairs(sentences_of([[16] * 40] * 200), LONGEST, 0)
    first, second = lengths_of(pairs)
    full = first + second == LONGEST
    assert full.mean() > 0.95
    assert set(zip(first[full].tolist(), second[full].tolist(), strict=True)) == {(15, 14)}
    removed = pairs[full, 2] % 16
    assert set(removed.tolist()) == {0, 1, 2}
    assert removed.mean() == pytest.approx(1, abs=0.1)


def test_the_second_document_is_any_other_one_and_the_seed_decides() -> None:
    text = sentences_of([[5] * 300] * 4)
    first, again, other = (draw_pairs(text, LONGEST, seed) for seed in (3, 3, 4))
    seen = {tuple(document_of(text, start) for start in pair) for pair in first[:, [0, 2]]}
    assert seen == {(a, b) for a in range(4) for b in range(4)}
    assert np.array_equal(first, again)
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
    assert PairTemplate.from_tokenizer(tokenizer).token_types == types
    special = SpecialTokens.from_tokenizer(tokenizer)
    pairs = make_pairs(["\n".join(VERSES)] * 9, tokenizer, 32, 0)
    batch = pairs.batch(np.arange(len(pairs.ids))[::-1])
    widest = 0
    for ids, mask, kinds in zip(
        batch.input_ids.tolist(), batch.attention_mask.tolist(), batch.token_types, strict=True
    ):
        words = groupby(ids, lambda token: token in special.all)
        segments = [tokenizer.decode(list(run)) for is_special, run in words if not is_special]
        first, second = segments
        expected = tokenizer.encode(first, second)
        padding = [0] * (len(ids) - len(expected))
        assert ids == expected.ids + [special.pad] * len(padding)
        assert mask == [1] * len(expected) + padding
        assert kinds.tolist() == expected.type_ids + padding
        widest = max(widest, len(expected))
    assert widest == batch.input_ids.shape[1] <= 32
    assert batch.rows(slice(1, 3)).input_ids.tolist() == batch.input_ids[1:3].tolist()


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


@pytest.mark.parametrize("documents", [["\n".join(VERSES)], list(VERSES), []])
def test_text_without_pairs_is_refused(documents: list[str]) -> None:
    message = rf"at least two documents.*\(got documents: {len(documents)}\)"
    with pytest.raises(ValueError, match=message):
        make_pairs(documents, verse_tokenizer(), 32, 0)
