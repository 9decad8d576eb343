"""Windows of texts that are longer than the model's limit."""

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fillmask.tokenization import reader
from fillmask.tokenization.encoded_text import EncodedWords
from fillmask.tokenization.windows import split_into_windows
from tests.service.tiny import MASK_ID, VOCABULARY

MAX_TOKENS = 32
ROOM = MAX_TOKENS - 2
WORD = VOCABULARY.index("dog")


def long_text(length: int, masks: list[int], continuations: list[int]) -> EncodedWords:
    """Make a text of single letters, with masks and with continuations of words."""
    own = [MASK_ID if i in masks else WORD for i in range(length)]
    words = np.cumsum([i not in continuations for i in range(length)])
    return EncodedWords(
        input_ids=np.array([2, *own, 3]),
        positions=np.arange(1, length + 1),
        spans=tuple((2 * i, 2 * i + 1) for i in range(length)),
        words=words,
        parts=np.zeros(length, dtype=np.int64),
    )


def test_masks_far_apart_have_windows_of_their_own() -> None:
    # Masks near each other share a window.
    words = long_text(200, [3, 9, 100, 199], [])
    windows = split_into_windows(words, MASK_ID, MAX_TOKENS)
    assert [len(window.encoded.mask_spans) for window in windows] == [2, 1, 1]
    assert [window.span for window in windows] == [(0, 59), (172, 231), (340, 399)]


@pytest.mark.parametrize(("distance", "masks"), [(14, [2]), (15, [1, 1])])
def test_window_keeps_a_quarter_of_its_room_on_each_side(distance: int, masks: list[int]) -> None:
    windows = split_into_windows(long_text(200, [90, 90 + distance], []), MASK_ID, MAX_TOKENS)
    assert [len(window.encoded.mask_spans) for window in windows] == masks


TEXT = "the dog barked at the cat and " * 12  # 84 tokens


def fill_in_windows(client: TestClient, text: str, **parameters: Any) -> Any:
    """Request the fills of a text in windows."""
    body = {"inputs": text, "parameters": {"on_long_text": "window", **parameters}}
    return client.post("/fill-mask", json=body)


def test_a_mask_is_filled_from_its_window(client: TestClient) -> None:
    # The sequence of a fill contains the entire text.
    text = f"{TEXT}the [MASK] run {TEXT}"
    fills = fill_in_windows(client, text, top_k=3).json()
    start, end = fills[0]["window"]
    alone = client.post(
        "/fill-mask", json={"inputs": text[start:end], "parameters": {"top_k": 3}}
    ).json()
    assert "[MASK]" in text[start:end]
    for fill, other in zip(fills, alone, strict=True):
        assert fill["window"] == [start, end]
        assert fill["token"] == other["token"]
        assert fill["score"] == pytest.approx(other["score"])
        assert fill["sequence"] == text[:start] + other["sequence"] + text[end:]


def test_several_windows_of_a_text(client: TestClient) -> None:
    text = f"[MASK] {TEXT}[MASK] and [MASK]"
    fills = fill_in_windows(client, text, top_k=2).json()
    assert [len(mask) for mask in fills] == [2, 2, 2]
    parts = [mask[0]["window"] for mask in fills]
    assert parts[0] != parts[1] == parts[2]
    for parameters in ({"targets": ["dog", "a cat"]}, {"granularity": "word", "top_k": 2}):
        fills = fill_in_windows(client, text, **parameters).json()
        assert [len(mask) for mask in fills] == [2, 2, 2]
        assert all("window" in fill for mask in fills for fill in mask)


def test_a_text_that_fits_is_one_window(client: TestClient) -> None:
    # The response equals the response without the parameter `on_long_text`.
    body = {"inputs": "the [MASK] barked"}
    assert (
        fill_in_windows(client, body["inputs"]).json()
        == client.post("/fill-mask", json=body).json()
    )


@pytest.mark.parametrize(
    ("text", "parameters", "reason"),
    [
        (TEXT + "[MASK]", {"on_long_text": "error"}, "special tokens included (got 87); shorten"),
        (TEXT + "[MASK]", {"on_long_text": None}, "special tokens included (got 87); shorten"),
        (TEXT, {}, "inputs has no mask; write [MASK]"),
        (f"[MASK] {TEXT}[MASK]", {"strategy": "joint"}, "too far apart for joint filling"),
        ("[MASK]", {"targets": ["dog " * 31]}, "at most 30 tokens in place of a mask (got 31)"),
        (TEXT, {"on_long_text": "cut"}, 'on_long_text must be error or window (got "cut").'),
    ],
)
def test_rejected_requests(client: TestClient, text: str, parameters: Any, reason: str) -> None:
    answer = fill_in_windows(client, text, **parameters)
    assert answer.status_code == 422
    assert reason in answer.json()["error"]


def test_a_text_above_the_character_limit_is_rejected(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The check precedes tokenization, which is costly for long texts.
    monkeypatch.setattr(reader, "MAX_WINDOWED_CHARS", 400)
    assert fill_in_windows(client, TEXT + "[MASK]").status_code == 200
    answer = fill_in_windows(client, TEXT + TEXT + "[MASK]")
    assert answer.status_code == 422
    assert answer.json()["error"] == (
        "inputs must have at most 400 characters with windows (got 726)."
    )
