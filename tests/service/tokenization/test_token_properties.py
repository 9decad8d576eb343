"""Tokens and spans of any Unicode text, with every kind of tokenizer."""

import json
from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers

from fillmask.bundles.bundle import default_bundle_path
from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import TextPair
from fillmask.tokenization.tokenizer import Tokenizer
from tests.properties import examples
from tests.service.tiny import MASK_ID, VOCABULARY
from tests.service.tiny_calls import make_pair_tokenizer
from tests.service.tokenization.test_detokenizer import byte_level, unigram

BUILT_IN = json.loads((default_bundle_path() / "tokenizer.json").read_bytes())


def built_in(**normalizer: bool) -> Tokenizer:
    """Load the tokenizer of the built-in model, with another setting of its normalizer."""
    description = BUILT_IN | {"normalizer": BUILT_IN["normalizer"] | normalizer}
    return Tokenizer(json.dumps(description).encode(), "[MASK]", 103, (0, 100, 101, 102, 103))


SPECIALS = ["[MASK]", "<mask>", "[SEP]", "[CLS]", "[PAD]", "[UNK]", "<s>", "</s>", "<pad>", "<unk>"]
ASCII_PIECES = st.sampled_from(
    [
        *(
            *SPECIALS,
            "[MASK",
            "MASK]",
            "[mask]",
            "##s",
            " ",
            "\n",
            "\x01",
            "\x1f",
            "\x7f",
            "the",
            "walks",
        ),
        *("a", "Paris", " [MASK] ", " <mask> ", "\n<mask>", "x" * 101),
    ]
)
PIECES = st.sampled_from(
    ["é", "e\u0301", "日本", "😀", "\u00a0", "\u200b", "\0", "\ufeff", "ß", "İ", "ﬁ"]
)
ASCII = ASCII_PIECES | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
TEXTS = (st.lists(ASCII, max_size=10) | st.lists(ASCII | PIECES | TEXT, max_size=10)).map("".join)
# with 200 repetitions, long enough for the call that releases the interpreter lock
LONG = st.tuples(TEXTS, st.sampled_from([1, 1, 1, 30, 200])).map(lambda drawn: drawn[0] * drawn[1])


@pytest.mark.parametrize(
    "normalizer", [{}, {"lowercase": False}, {"clean_text": False}, {"strip_accents": False}]
)
def test_cached_words_are_those_of_the_library(normalizer: dict[str, bool]) -> None:
    tokenizer = built_in(**normalizer)
    library = copy(tokenizer)
    cache, library._words = tokenizer._words, None
    assert cache is not None

    @given(LONG)
    def check(text: str) -> None:
        found, expected = tokenizer.encode(text), library.encode(text)
        assert found.input_ids.tolist() == expected.input_ids.tolist()
        assert found.mask_positions.tolist() == expected.mask_positions.tolist()
        assert found.mask_spans == expected.mask_spans
        printable = text.isascii() and all(one.isprintable() or one in "\t\n\r" for one in text)
        assert (cache.encode(text) is not None) == printable

    check()


TOKENIZERS = {
    "WordPiece": (make_pair_tokenizer(), "[MASK]", (2, 3), 1),
    "cached": (built_in(), "[MASK]", (101, 102), 100),
    "byte-level": (byte_level(), "<mask>", (0, 2), 3),
    "byte-level, no strip": (byte_level(lstrip=False), "<mask>", (0, 2), 3),
    "unigram": (unigram(), "<mask>", (0, 2), 3),
}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_masks_and_special_tokens_of_any_text(kind: str) -> None:
    # The masks are where the text has them, and no text contains another special token.
    tokenizer, mask_token, around, unknown_id = TOKENIZERS[kind]
    forbidden = tokenizer.special_token_ids - {tokenizer.mask_token_id, unknown_id}

    @given(LONG)
    def check(text: str) -> None:
        encoded = tokenizer.encode(text)
        ids = encoded.input_ids.tolist()
        assert (ids[0], ids[-1]) == around
        assert not forbidden.intersection(ids[1:-1])
        positions = encoded.mask_positions.tolist()
        assert positions == [i for i, one in enumerate(ids) if one == tokenizer.mask_token_id]
        assert list(encoded.mask_spans) == _places(text, mask_token)
        words = tokenizer.encode_words(text)
        assert words.input_ids.tolist() == ids
        assert words.positions.tolist() == list(range(1, len(ids) - 1))
        starts = [start for start, _ in words.spans]
        assert starts == sorted(starts)
        assert all(0 <= start <= end <= len(text) for start, end in words.spans)
        assert words.words.tolist() == sorted(words.words)
        assert [words.spans[i - 1] for i in positions] == list(encoded.mask_spans)

    check()


def _places(text: str, token: str, offset: int = 0) -> list[tuple[int, int]]:
    """Return the spans of a token in a text, from left to right."""
    found, start = [], text.find(token)
    while start >= 0:
        found.append((offset + start, offset + start + len(token)))
        start = text.find(token, start + len(token))
    return found


@given(TEXTS, TEXTS)
def test_spans_of_a_pair_count_characters_of_the_joined_text(first: str, second: str) -> None:
    tokenizer, pair = TOKENIZERS["WordPiece"][0], TextPair(first, second)
    encoded, words = tokenizer.encode(pair), tokenizer.encode_words(pair)
    one, two = tokenizer.encode_words(first), tokenizer.encode_words(second)
    start = pair.second_start
    places = [*_places(first, "[MASK]"), *_places(second, "[MASK]", start)]
    assert list(encoded.mask_spans) == places
    assert (encoded.input_ids[encoded.mask_positions] == MASK_ID).all()
    assert len(encoded.mask_positions) == len(places)
    ids = [*one.input_ids.tolist(), *two.input_ids.tolist()[1:]]
    assert encoded.input_ids.tolist() == words.input_ids.tolist() == ids
    assert list(words.spans) == [*one.spans, *((start + a, start + b) for a, b in two.spans)]
    assert words.parts.tolist() == [0] * len(one.positions) + [1] * len(two.positions)
    assert encoded.token_types is not None
    assert encoded.token_types.tolist() == [
        *[0] * len(one.input_ids),
        *[1] * (len(two.input_ids) - 1),
    ]
    assert encoded.second_start == start
    joined = words.words.tolist()
    assert joined == sorted(joined)
    assert not set(joined[: len(one.words)]) & set(joined[len(one.words) :])


@given(LONG)
def test_each_token_is_the_text_of_its_span(text: str) -> None:
    words = TOKENIZERS["WordPiece"][0].encode_words(text)
    normalizer = normalizers.BertNormalizer(handle_chinese_chars=False)
    for token_id, (start, end) in zip(words.input_ids[words.positions], words.spans, strict=True):
        token = VOCABULARY[token_id]
        if token in {"[MASK]", "[UNK]"}:
            assert end > start
        else:
            assert normalizer.normalize_str(text[start:end]) == token.removeprefix("##")


WHOLE = ["paris", "the", "dog", "cat", "walk", "tea"]


@examples(2)
@given(
    st.lists(st.sampled_from(WHOLE), min_size=1, max_size=6),
    st.lists(st.sampled_from(WHOLE), max_size=6),
    st.sampled_from([*WHOLE, "##s", "##ing", ".", "-"]),
    st.sampled_from([" ", "  ", "\n"]),
)
def test_a_filled_text_has_the_token_in_place_of_the_mask(
    before: list[str], after: list[str], token: str, space: str
) -> None:
    tokenizer = TOKENIZERS["WordPiece"][0]
    text = space.join([*before, "[MASK]", *after])
    encoded = tokenizer.encode(text)
    token_id = VOCABULARY.index(token)
    token_str, filled = tokenizer.mask_slot(text, encoded).fill(token_id)
    expected = encoded.replace_mask(0, [token_id]).input_ids.tolist()
    assert tokenizer.encode(filled).input_ids.tolist() == expected
    assert token_str == token
    assert tokenizer.encode_target(token_str) == (token_id,)


@given(LONG | st.sampled_from(SPECIALS))
def test_a_target_has_only_ordinary_tokens(target: str) -> None:
    for tokenizer, _, _, unknown_id in TOKENIZERS.values():
        try:
            ids = tokenizer.encode_target(target)
        except InvalidRequestError:
            continue
        assert ids
        assert not tokenizer.special_token_ids.intersection(ids)
        assert unknown_id not in ids
        assert target not in map(tokenizer.token_str, tokenizer.special_token_ids)
