"""Split of documents into sentences, with the tokens of the entire documents."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer

from fillmask_model.pretraining.row_files import load_or_build_arrays
from fillmask_model.pretraining.sentences import Sentences, read_sentences
from fillmask_model.tokenizers.word_pieces import train_word_pieces

PARAGRAPH = 'He met Mr. Smith. "Where is it?" Nobody did... They left!'
SENTENCES = ["He met Mr. Smith.", '"Where is it?"', "Nobody did...", "They left!"]
DOCUMENTS = [PARAGRAPH, f"{PARAGRAPH}\na line without a stop\n{PARAGRAPH}", "One."]
TOKENIZER = train_word_pieces(DOCUMENTS, vocab_size=200)


def texts_of(sentences: Sentences, tokenizer: Tokenizer = TOKENIZER) -> list[list[str]]:
    """Return the decoded sentences of each document."""
    starts = sentences.starts
    decoded = [tokenizer.decode(sentences.tokens[a:b].tolist()) for a, b in pairwise(starts)]
    ends = sentences.documents
    return [decoded[a:b] for a, b in pairwise(ends)]


def written(texts: list[str]) -> list[str]:
    """Return the texts after encoding and decoding."""
    return [TOKENIZER.decode(TOKENIZER.encode(t, add_special_tokens=False).ids) for t in texts]


def test_a_sentence_ends_at_a_stop_or_a_line_end() -> None:
    # The stop of a title, such as "Mr.", does not end a sentence.
    assert texts_of(read_sentences(DOCUMENTS, TOKENIZER, 99)) == [
        written(SENTENCES),
        written([*SENTENCES, "a line without a stop", *SENTENCES]),
        ["one."],
    ]


def test_tokens_are_those_of_entire_documents() -> None:
    # A byte-level token includes the space before its word, also at the start of a sentence.
    byte_level = Tokenizer(models.BPE())
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    byte_level.train_from_iterator(
        DOCUMENTS,
        BpeTrainer(
            vocab_size=400,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    for tokenizer in (TOKENIZER, byte_level):
        sentences = read_sentences(DOCUMENTS, tokenizer, 99)
        whole = [tokenizer.encode(text, add_special_tokens=False).ids for text in DOCUMENTS]
        assert sentences.tokens.tolist() == [token for ids in whole for token in ids]
        assert (
            sentences.starts[sentences.documents].tolist()
            == np.cumsum([0, *map(len, whole)]).tolist()
        )
    first, *others = texts_of(read_sentences([PARAGRAPH], byte_level, 99), byte_level)[0]
    assert [first, *others] == [SENTENCES[0], *(f" {text}" for text in SENTENCES[1:])]


def test_long_sentences_are_cut_into_parts() -> None:
    sentences = read_sentences(["one " * 25 + "\n" + "one " * 10], TOKENIZER, 10)
    whole = len(sentences.tokens)
    tokens = TOKENIZER.encode("one", add_special_tokens=False).ids
    assert whole == 35 * len(tokens)
    assert np.diff(sentences.starts).max() == 10
    assert 25 * len(tokens) in sentences.starts.tolist()


def test_documents_without_tokens_are_left_out() -> None:
    sentences = read_sentences(["One.", "\u200b", " ", "One. One."], TOKENIZER, 99)
    assert texts_of(sentences) == [["one."], ["one.", "one."]]


def test_no_document_is_an_empty_text() -> None:
    sentences = read_sentences([], TOKENIZER, 99)
    assert (sentences.tokens.size, sentences.starts.tolist(), sentences.documents.tolist()) == (
        0,
        [0],
        [0],
    )


def test_sentences_survive_the_disk(tmp_path: Path) -> None:
    # Arrays on disk take two bytes per value if all values are small.
    made = read_sentences(DOCUMENTS, TOKENIZER, 99)
    key = {"texts": "a", "held_out": "b", "tokenizer": "c"}
    arrays = load_or_build_arrays(
        tmp_path / "sentences",
        key,
        lambda: {f"training_{name}": part for name, part in made.to_arrays().items()},
    )
    assert arrays["training_starts"].dtype == np.uint16
    read = Sentences.from_arrays(
        {name.removeprefix("training_"): part for name, part in arrays.items()}
    )
    assert read.starts.dtype == np.int64
    assert texts_of(read) == texts_of(made)
