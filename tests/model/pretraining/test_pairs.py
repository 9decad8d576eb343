"""Sentences, pairs of segments and their inputs."""

from __future__ import annotations

from itertools import accumulate, groupby

import numpy as np
import pytest
from tokenizers import processors
from tokenizers.processors import PostProcessor

from fillmask_model.encoder.classifier import NEXT_SENTENCE_LABELS
from fillmask_model.pretraining.pairs import (
    IS_NEXT,
    NOT_NEXT,
    Document,
    draw_pairs,
    make_pairs,
    pair_types,
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


def test_a_sentence_ends_at_a_stop_or_a_line_end() -> None:
    # The stop of a title, such as "Mr.", does not end a sentence. Documents without tokens go.
    found = read_sentences([*DOCUMENTS, "\u200b", " "], WORD_PIECES, 99)
    assert [document.sentences for document in found] == [
        SENTENCES,
        [*SENTENCES, "a line without a stop", *SENTENCES],
        ["One."],
    ]
    assert read_sentences([], WORD_PIECES, 99) == []


def test_long_sentences_are_cut_into_parts() -> None:
    [document] = read_sentences(["one " * 25 + "\n" + "one " * 10], WORD_PIECES, 10)
    one = len(WORD_PIECES.encode("one", add_special_tokens=False).ids)
    assert document.bounds[-1] == 35 * one
    assert np.diff(document.bounds).max() == 10
    assert 25 * one in document.bounds
    assert "".join("".join(document.sentences).split()) == "one" * 35


def documents_of(lengths: list[list[int]]) -> list[Document]:
    """Return documents with sentences of these lengths, each named by its places and its length."""
    return [
        Document(
            [f"{number}.{place}.{length}" for place, length in enumerate(own)],
            [*accumulate(own, initial=0)],
        )
        for number, own in enumerate(lengths)
    ]


def corpus(documents: int = 400) -> list[Document]:
    """Return documents with random numbers of sentences and of tokens per sentence."""
    generator = np.random.default_rng(0)
    return documents_of(
        [generator.integers(1, 17, generator.integers(1, 31)).tolist() for _ in range(documents)]
    )


def places(segment: str) -> list[tuple[int, int]]:
    """Return the document and the place of each sentence."""
    return [(int(one.split(".")[0]), int(one.split(".")[1])) for one in segment.split()]


def tokens(segment: str) -> int:
    return sum(int(one.rpartition(".")[2]) for one in segment.split())


@pytest.mark.parametrize("sentences", [2, 11])
def test_half_of_the_pairs_are_neighbours(sentences: int) -> None:
    # The share of each label differs from 50 % by less than 3.3 standard errors.
    assert (NEXT_SENTENCE_LABELS[IS_NEXT], NEXT_SENTENCE_LABELS[NOT_NEXT]) == (
        *("is_next", "not_next"),
    )
    pairs = draw_pairs(documents_of([[6] * sentences] * (12_000 // sentences)), LONGEST, 0)
    labels = np.array([label for _, _, label in pairs])
    assert len(labels) > 1_000
    assert abs(labels.mean() - 0.5) < 3.3 * 0.5 / len(labels) ** 0.5


def test_segments_come_from_one_document_each_and_follow_each_other() -> None:
    # The first segments and those that follow them have all sentences but some last ones.
    text = corpus()
    used: list[tuple[int, int]] = []
    for first, second, label in draw_pairs(text, LONGEST, 0):
        (document, start), ours = places(first)[0], places(first)
        assert ours == [(document, start + i) for i in range(len(ours))]
        other, begin = places(second)[0]
        theirs = places(second)
        assert theirs == [(other, begin + i) for i in range(len(theirs))]
        assert (other == document) == (label == IS_NEXT)
        if label == IS_NEXT:
            assert begin == start + len(ours)
        used += ours + (theirs if label == IS_NEXT else [])
    assert len(used) == len(set(used))
    assert len(used) > 0.75 * sum(len(document.sentences) for document in text)


def test_lengths_are_those_of_bert_and_do_not_tell_the_label() -> None:
    # One pair in ten has a random target length. The others have the maximum length.
    # Sentences of one token reach every target length exactly.
    pairs = draw_pairs(documents_of([[1] * 50_000] * 3), LONGEST, 0)
    total = np.array([tokens(first) + tokens(second) for first, second, _ in pairs])
    # a random target is shorter than the longest in 27 of 28 draws
    assert (total < LONGEST).mean() == pytest.approx(0.1 * 27 / 28, abs=0.01)
    assert set(total.tolist()) == set(range(2, LONGEST + 1))
    # the mean lengths of the segments differ by at most half a token between the labels
    means = []
    for wanted in (IS_NEXT, NOT_NEXT):
        drawn = draw_pairs(corpus(4_000), LONGEST, 0)
        lengths = [(tokens(one), tokens(two)) for one, two, label in drawn if label == wanted]
        a, b = np.array(lengths).T
        # the input has no room for more
        cut = np.minimum(a, np.maximum(LONGEST - b, (LONGEST + 1) // 2))
        means.append((cut.mean(), np.minimum(b, LONGEST - cut).mean()))
    assert means[0] == pytest.approx(means[1], abs=0.5)


def test_the_second_document_is_any_other_one_and_the_seed_decides() -> None:
    text = documents_of([[5] * 300] * 4)
    first, again, other = (draw_pairs(text, LONGEST, seed) for seed in (3, 3, 4))
    seen = {(places(one)[0][0], places(two)[0][0]) for one, two, _ in first}
    assert seen == {(a, b) for a in range(4) for b in range(4)}
    assert first == again
    assert len(set(first) & set(other)) < 0.2 * len(first)


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
    assert pair_types(tokenizer) == types
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
        pair_types(tokenizer)


@pytest.mark.parametrize("documents", [["\n".join(VERSES)], list(VERSES), []])
def test_text_without_pairs_is_refused(documents: list[str]) -> None:
    message = rf"at least two documents.*\(got documents: {len(documents)}\)"
    with pytest.raises(ValueError, match=message):
        make_pairs(documents, verse_tokenizer(), 32, 0)
