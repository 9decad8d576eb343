"""Texts and pairs in request bodies."""

from typing import Any

import pytest

from fillmask.parameters.texts import TextPair, read_inputs


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", "a"),
        ({"text": "a"}, "a"),
        ({"text": "a", "text_pair": None}, "a"),
        ({"text": "a", "text_pair": "b"}, TextPair("a", "b")),
        ({"text_pair": "b", "text": "a"}, TextPair("a", "b")),
        (["a", {"text": " a"}, {"text": "a", "text_pair": "b "}], ["a", " a", TextPair("a", "b ")]),
        ([""], [""]),
        ("", ""),
    ],
)
def test_texts_and_pairs(value: Any, expected: object) -> None:
    assert read_inputs(value, "inputs", 3) == expected
