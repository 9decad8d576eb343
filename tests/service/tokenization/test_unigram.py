"""Unigram segmentation, compared with the tokenizers library."""

import json
import random

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from fillmask.tokenization.unigram import Unigram

SEED_TEXTS = [
    "",
    " ",
    "aaaaaaaaaaaaaaa hahahaha !!!!!!! ......",
    "the theatre there, then; other mother",
    "東京タワーへ日本 x日日y ü",
    "e\u0301 👩\u200d👩\u200d👧 a\u200bb \u202eabc",
    "</s> <unk> <s>",
    "mother" * 300,
    "日" * 500,
]
SPECIAL = ["<s>", "</s>", "<unk>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def pieces(extra: list[str], seed: int) -> list[tuple[str, float]]:
    """Make pieces from letters, random strings and words, many of them with equal scores."""
    draw = random.Random(seed)  # noqa: S311 - a choice, not a secret
    alphabet = "▁abehmnortx!.東</s>"
    made = dict.fromkeys(alphabet)
    made |= dict.fromkeys("".join(draw.choices(alphabet, k=draw.randint(2, 6))) for _ in range(900))
    made |= dict.fromkeys(["the", "▁the", "there", "mother", "ther", "other", "aa", "aaa", "東京"])
    scored = [(name, -float(draw.randint(2, 9))) for name in made]
    return [*((name, 0.0) for name in SPECIAL), *((name, 0.0) for name in extra), *scored]


def both(vocabulary: list[tuple[str, float]], *, byte_fallback: bool) -> tuple[Tokenizer, Unigram]:
    """Make the library's tokenizer, which cannot produce special pieces, and our unigram model."""
    hidden = [(f"{name} ", score) for name, score in vocabulary[: len(SPECIAL)]]
    reached = [*hidden, *vocabulary[len(SPECIAL) :]]
    library = Tokenizer(models.Unigram(reached, unk_id=2, byte_fallback=byte_fallback))
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    description = json.loads(library.to_str())["model"]
    description["vocab"] = [list(piece) for piece in vocabulary]
    return library, Unigram(description, excluded_ids=range(len(SPECIAL)))


def ours(unigram: Unigram) -> Tokenizer:
    """Make the service's tokenizer, in which the library's model never receives text."""
    tokenizer = Tokenizer(models.WordLevel({}, unk_token=""))
    custom = pre_tokenizers.PreTokenizer.custom(unigram)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), custom])
    return tokenizer


@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_ids_and_offsets_equal_those_of_the_library(seed: int, *, byte_fallback: bool) -> None:
    # The results agree even if several segmentations have equal scores.
    library, unigram = both(
        pieces(BYTES if byte_fallback else [], seed), byte_fallback=byte_fallback
    )
    tokenizer = ours(unigram)
    draw = random.Random(seed)  # noqa: S311 - a choice, not a secret
    letters = "▁abehmnortx!.東日本 ü👩\u0301</s>"
    texts = ["".join(draw.choices(letters, k=draw.randint(1, 120))) for _ in range(100)]
    for text in [*SEED_TEXTS, *texts, *SEED_TEXTS]:  # the last texts come from the cache
        theirs, own = library.encode(text), tokenizer.encode(text)
        assert own.ids == theirs.ids
        assert own.offsets == theirs.offsets
        assert own.word_ids == theirs.word_ids


def test_the_cache_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fillmask.tokenization.unigram.CACHED_WORDS_BYTES", 2**14)
    _, unigram = both(pieces(BYTES, 0), byte_fallback=True)
    for number in range(100):
        word = chr(0x1F600 + number) * 16
        assert len(unigram._tokenize(word)) == 64
        assert unigram._tokenize(word) is unigram._tokenize(word)
        assert unigram._cached.held_bytes <= 2**14


def test_a_character_is_unknown_if_one_of_its_bytes_has_no_piece() -> None:
    library, unigram = both(pieces(BYTES[:200], 0), byte_fallback=True)
    text = "a 日 b é"
    assert ours(unigram).encode(text).ids == library.encode(text).ids
    assert ours(unigram).encode(text).ids.count(2) == 1


def test_names_and_ids() -> None:
    # The names of special pieces have no ids, because no text may produce these pieces.
    vocabulary = pieces([], 0)
    _, unigram = both(vocabulary, byte_fallback=False)
    assert [unigram.id_to_token(i) for i in range(len(vocabulary))] == [
        name for name, _ in vocabulary
    ]
    assert unigram.id_to_token(len(vocabulary)) is None
    assert unigram.id_to_token(-1) is None
    assert unigram.token_to_id("mother") == [name for name, _ in vocabulary].index("mother")
    assert unigram.token_to_id("</s>") is None


@pytest.mark.parametrize("unknown_id", [None, 3, -1])
def test_a_model_without_an_unknown_token_is_rejected(unknown_id: int | None) -> None:
    # The library would raise an error later, at the first unknown character.
    model = {"vocab": [["a", -1.0], ["b", -2.0], ["c", -2.0]], "unk_id": unknown_id}
    with pytest.raises(ValueError, match=rf"from 0 to 2 \(got {unknown_id}\)"):
        Unigram(model, excluded_ids=[])
