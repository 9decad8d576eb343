"""Fills in windows of texts that are longer than the model's limit."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.tokenization import reader

TEXT = "the dog barked at the cat and " * 12  # 84 tokens


def fill_in_windows(client: TestClient, text: str, **parameters: Any) -> Any:
    """Request the fills of a text in windows."""
    body = {"inputs": text, "parameters": {"on_long_text": "window", **parameters}}
    return client.post("/fill-mask", json=body)


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


@pytest.mark.parametrize(
    ("text", "parameters", "reason"),
    [
        (f"[MASK] {TEXT}[MASK]", {"strategy": "joint"}, "too far apart for joint filling"),
        ("[MASK]", {"targets": ["dog " * 31]}, "at most 30 tokens in place of a mask (got 31)"),
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
