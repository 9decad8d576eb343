"""Word cache: its memory, and the tokenizers that it refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fillmask.bundles.bundle import default_bundle_path
from fillmask.tokenization import word_cache
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask.tokenization.tokenizer_file import load_tokenizer
from fillmask.tokenization.word_cache import WordCache

BUILT_IN = (default_bundle_path() / "tokenizer.json").read_bytes()
MASK_ID, SPECIAL_IDS = 103, (0, 100, 101, 102, 103)


def description() -> dict[str, Any]:
    """Return the tokenizer.json of the built-in model, with the most frequent 4,000 tokens."""
    content = json.loads(BUILT_IN)
    assert isinstance(content, dict)
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {token: i for token, i in vocabulary.items() if i < 4000}
    return content


def make(content: dict[str, Any]) -> Tokenizer:
    return Tokenizer(json.dumps(content).encode(), "[MASK]", MASK_ID, SPECIAL_IDS)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = make(description())._words
    assert cache is not None
    monkeypatch.setattr(word_cache, "MAX_WORDS", 10)
    for number in range(100):
        cache.encode(f"word{number}")
        assert len(cache._ids) <= 10
    cache.encode("x" * 10_000)
    cache.encode("xqzjxqzjxqzj")
    assert max(map(len, cache._ids)) <= 32
    assert max(map(len, cache._ids.values())) <= 4


def _with(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update(changes)


def _add(token: str, **flags: bool) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        names = ("single_word", "lstrip", "rstrip", "normalized", "special")
        added = {"id": 999, "content": token, **dict.fromkeys(names, False), **flags}
        content["added_tokens"].append(added)

    return change


def _mask(**flags: bool) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        mask = next(one for one in content["added_tokens"] if one["content"] == "[MASK]")
        mask.update(flags)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _with(normalizer=None),
        _with(normalizer={"type": "Lowercase"}),
        _with(pre_tokenizer={"type": "Whitespace"}),
        _mask(lstrip=True),
        _mask(normalized=True),
        _mask(single_word=True),
        _add("new"),  # an ordinary added token matches within words
        _add("<[", special=True),  # the match of "<[" in "<[MASK]" hides the mask
        _add("[MASK]s", special=True),
        lambda content: content.pop("pre_tokenizer"),
        lambda content: content["model"]["vocab"].pop("[UNK]"),  # the added token is not a word's
        lambda content: content["post_processor"]["special_tokens"]["[CLS]"].update(ids=[MASK_ID]),
    ],
)
def test_other_tokenizers_have_no_cache(change: Callable[[dict[str, Any]], None]) -> None:
    content = description()
    change(content)
    loaded = load_tokenizer(json.dumps(content).encode(), "[MASK]", MASK_ID)
    assert not WordCache.is_exact(loaded, "[MASK]", SPECIAL_IDS)


def test_special_tokens_that_are_words_have_no_cache() -> None:
    # A text may contain such a token as a word, and the tokenizer rejects it.
    loaded = load_tokenizer(json.dumps(description()).encode(), "[MASK]", MASK_ID)
    assert WordCache.is_exact(loaded, "[MASK]", SPECIAL_IDS)
    for word in ("paris", "##ing", "!"):
        word_id = loaded.tokenizer.token_to_id(word)
        assert word_id is not None
        assert not WordCache.is_exact(loaded, "[MASK]", [*SPECIAL_IDS, word_id])
