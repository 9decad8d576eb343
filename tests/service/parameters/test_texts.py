"""Texts and pairs in request bodies."""

from typing import Any

import pytest

from fillmask.errors import InvalidRequestError
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


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (True, "must be a text"),
        ([], "is empty"),
        ({}, "instances.text is missing"),
        ([{"text": "a"}] * 4, r"must have at most 3 texts \(got 4\); send fewer"),
        (["a", {"text": "a", "text_pair": {}}], r"instances\[1\].text_pair must be a non-blank"),
        ([["a", "b"]], r"instances\[0\] must be a text or a pair"),
        ({"text": "a", "x" * 500: 1}, 'Unknown field "xxx'),
    ],
)
def test_invalid_inputs(value: Any, reason: str) -> None:
    # Messages contain the field's name in the request and have fewer than 250 characters.
    with pytest.raises(InvalidRequestError, match=reason) as caught:
        read_inputs(value, "instances", 3)
    assert len(caught.value.text) < 250
