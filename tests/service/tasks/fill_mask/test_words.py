"""Words in place of a mask, compared with the same beam search by the tiny model's oracle."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as TokenizerFile

from fillmask.engine.passes import ModelPass, PassOutputs
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tasks.fill_mask.results import WordFill
from fillmask.tasks.fill_mask.words import BEAM_WIDTH, WordSearch, max_word_passes
from fillmask.tokenization.tokenizer import Tokenizer
from tests.service.responses import post
from tests.service.serving import serving
from tests.service.tiny import MASK_ID, SPECIAL, VOCABULARY, Tiny, build_tokenizer
from tests.service.tiny_calls import make_tokenizer

TOLERANCE = 1e-4
TEXT = "the dog [MASK] at the cat"
BEFORE = [VOCABULARY.index(name) for name in ("[CLS]", "the", "dog")]
AFTER = [VOCABULARY.index(name) for name in ("at", "the", "cat", "[SEP]")]
STARTS = [i for i, name in enumerate(VOCABULARY) if name.isalnum()]
CONTINUATIONS = [i for i, name in enumerate(VOCABULARY) if name.startswith("##")]


def fill(client: TestClient, text: str, **parameters: Any) -> Any:
    own = {"granularity": "word", **parameters}
    return post(client, "/fill-mask", inputs=text, parameters=own)


def search(tiny: Tiny, longest: int, top_k: int) -> list[tuple[str, float]]:
    """Search for words as the service does, with the oracle for one text at a time."""
    found: dict[str, float] = {}
    for length in range(1, longest + 1):
        width = top_k if length == 1 else BEAM_WIDTH
        words: list[tuple[list[int], float]] = [([], 0.0)]
        for place in range(length):
            grown = []
            for ids, log_prob in words:
                text = [*BEFORE, *ids, *[MASK_ID] * (length - place), *AFTER]
                log_probs = tiny.log_probs(text, len(BEFORE) + place)
                allowed = CONTINUATIONS if place else STARTS
                ranked = sorted(allowed, key=lambda token: -log_probs[token])[:width]
                grown += [([*ids, token], log_prob + float(log_probs[token])) for token in ranked]
            words = sorted(grown, key=lambda word: -word[1])[:width]
        for ids, log_prob in words:
            word = "".join(VOCABULARY[i].removeprefix("##") for i in ids)
            found[word] = max(found.get(word, -math.inf), log_prob)
    return sorted(found.items(), key=lambda item: -item[1])[:top_k]


@pytest.mark.parametrize(("longest", "top_k"), [(1, 12), (2, 2), (3, 12)])
def test_best_words(client: TestClient, tiny: Tiny, longest: int, top_k: int) -> None:
    # The log-probability of a fill is the log-probability of the entire word.
    fills = fill(client, TEXT, max_word_tokens=longest, top_k=top_k)
    expected = search(tiny, longest, top_k)
    assert [one["token_str"] for one in fills] == [word for word, _ in expected]
    for one, (word, log_prob) in zip(fills, expected, strict=True):
        assert one["log_prob"] == pytest.approx(log_prob, abs=TOLERANCE)
        assert one["score"] == pytest.approx(math.exp(one["log_prob"]))
        assert one["sequence"] == f"the dog {word} at the cat"
        assert (one["token"] == -1) == (len(one["tokens"]) > 1)


def test_words_are_whole(client: TestClient) -> None:
    # The search excludes continuations, special tokens and punctuation.
    fills = fill(client, TEXT, top_k=20)
    assert len(fills) == 20
    assert all(one["token_str"].isalnum() for one in fills)
    assert fills == fill(client, TEXT, top_k=20, max_word_tokens=3)


def test_passes_are_bounded(tiny: Tiny) -> None:
    # Words of one length need one pass, plus one per entry of the beam for each further token.
    assert max_word_passes(1) == 1
    assert max_word_passes(3) == 1 + (1 + BEAM_WIDTH) + (1 + 2 * BEAM_WIDTH)
    with serving(tiny.path, max_passes=max_word_passes(3)) as client:
        fill(client, TEXT)
        body = {"inputs": "[MASK] [MASK]", "parameters": {"granularity": "word"}}
        answer = client.post("/fill-mask", json=body)
    assert answer.status_code == 422
    assert f"needs {2 * max_word_passes(3)} passes" in answer.json()["error"]


class FakeModel:
    """Model that gives each mask the same tokens."""

    def __init__(self, tokens: Sequence[int], log_probs: Sequence[float]) -> None:
        none = np.empty((1, 0), dtype=np.float32)
        log_probs_1K = np.array([log_probs], dtype=np.float32)
        self._outputs = PassOutputs(np.array([tokens]), log_probs_1K, none)
        self.calls = 0

    async def submit(self, requests: Sequence[ModelPass]) -> list[PassOutputs]:
        assert requests
        self.calls += 1
        return [self._outputs] * len(requests)


@pytest.mark.parametrize(("log_prob", "parts"), [(-2.5, 2), (-2, 1), (-1.5, 1)])
async def test_word_keeps_its_most_likely_tokens(log_prob: float, parts: int) -> None:
    # The word is one token, or two tokens with a joint log-probability of -2.
    # In a tie the service chooses the single token.
    content = build_tokenizer()
    content.add_tokens(["walks"])
    tokenizer = Tokenizer(content.to_str().encode(), "[MASK]", MASK_ID, range(len(SPECIAL)))
    whole, *pieces = (len(VOCABULARY), VOCABULARY.index("walk"), VOCABULARY.index("##s"))
    model = FakeModel([whole, *pieces], [log_prob, -1, -1])
    search = WordSearch(tokenizer, model.submit, len(VOCABULARY) + 1, top_k=5, max_tokens=2)
    fills = await search.fill(TEXT, tokenizer.encode(TEXT), 0)
    [walks] = [fill for fill in fills if fill.sequence == TEXT.replace("[MASK]", "walks")]
    assert walks.log_prob == max(log_prob, -2)
    assert walks.tokens == (tuple(pieces) if parts == 2 else (whole,))


async def test_mask_where_no_word_fits(tiny: Tiny) -> None:
    tokenizer = make_tokenizer(tiny)
    model = FakeModel(CONTINUATIONS, [-1] * len(CONTINUATIONS))
    search = WordSearch(tokenizer, model.submit, len(VOCABULARY), top_k=5, max_tokens=3)
    assert await search.fill(TEXT, tokenizer.encode(TEXT), 0) == []
    assert model.calls == 3  # one call per length


async def fill_paris(text: InputText) -> list[WordFill]:
    """Fill a mask with a byte-level tokenizer that knows Paris with and without a space."""
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "Paris", "ĠParis", "i", "s", "Ġis"]
    content = TokenizerFile(models.BPE({name: i for i, name in enumerate(vocabulary)}, []))
    content.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    content.decoder = decoders.ByteLevel()
    content.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    content.add_special_tokens([*vocabulary[:4], AddedToken("<mask>", lstrip=True)])
    tokenizer = Tokenizer(content.to_str().encode(), "<mask>", 4, range(5), pairs=True)
    model = FakeModel([5, 6], [-1, -2])
    search = WordSearch(tokenizer, model.submit, len(vocabulary), top_k=5, max_tokens=1)
    return await search.fill(str(text), tokenizer.encode(text), 0)


@pytest.mark.parametrize(
    ("text", "token_str"),
    [
        ("<mask> is", "Paris"),
        ("is <mask>", " Paris"),
        ("is<mask>", " Paris"),
        ('is "<mask>', "Paris"),
        (TextPair("is", "<mask> is"), "Paris"),
        (TextPair("is", "is <mask>"), " Paris"),
    ],
    ids=str,
)
async def test_first_word_of_each_part_needs_no_space(text: InputText, token_str: str) -> None:
    [fill] = await fill_paris(text)
    assert fill.token_str == token_str
    space = " " if text == "is<mask>" else ""
    assert fill.sequence == str(text).replace("<mask>", f"{space}Paris")


async def found_tokens(content: TokenizerFile, candidates: list[int]) -> set[tuple[int, ...]]:
    """Return the tokens of the words of up to two tokens that a model with candidates finds."""
    special = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    content.pre_tokenizer = pre_tokenizers.Whitespace()
    content.add_special_tokens(special)
    tokenizer = Tokenizer(content.to_str().encode(), "[MASK]", 3, range(len(special)))
    model = FakeModel(candidates, range(-len(candidates), 0))
    search = WordSearch(tokenizer, model.submit, content.get_vocab_size(), top_k=5, max_tokens=2)
    fills = await search.fill("a [MASK]", tokenizer.encode("a [MASK]"), 0)
    return {fill.tokens for fill in fills}


async def test_tokens_with_a_mark_of_the_end_end_words() -> None:
    pieces = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "a</w>", "Par", "is</w>"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    content = TokenizerFile(models.BPE(vocabulary, [], end_of_word_suffix="</w>"))
    assert await found_tokens(content, [5, 6]) == {(6,), (5, 6)}


async def test_words_of_scripts_without_spaces_are_tokens() -> None:
    pieces = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "\u65e5", "##\u672c", "dog", "##s"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    content = TokenizerFile(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    assert await found_tokens(content, [5, 6, 7, 8]) == {(5,), (7,), (7, 8)}
