"""Nesting and schema limits of request and response bodies."""

import json
import math
from dataclasses import MISSING, fields
from typing import Any

import pytest

from fillmask.api.request_body import request_of
from fillmask.parameters.limits import Limits
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.fill_mask.results import FILL_FIELDS, Fill, FillBody, TextFills
from fillmask.tasks.task import FILL_MASK

LIMITS = Limits(
    max_tokens=32, max_texts=3, max_masks=5, max_top_k=9, max_passes=2, max_body_bytes=1000
)


def fill(token: int) -> Fill:
    return Fill(score=1 / token, token=token, token_str=f"t{token}", sequence=f"s{token}")


def body(token: int) -> dict[str, object]:
    """Return the JSON object of the fill of a token."""
    return {
        "score": 1 / token,
        "token": token,
        "token_str": f"t{token}",
        "sequence": f"s{token}",
    }


def answer(fills: list[list[list[Fill]]], *, single: bool) -> Any:
    """Return the parsed response with these fills."""
    return json.loads(FILL_MASK.response(list(map(TextFills, fills)), single=single))


@pytest.mark.parametrize(
    ("fills", "single", "expected"),
    [
        ([[[fill(1), fill(2)]]], True, [body(1), body(2)]),
        ([[[fill(1)], [fill(2)]]], True, [[body(1)], [body(2)]]),
        # a text with several masks has one list of fills per mask
        ([[[fill(1)]], [[fill(2)], [fill(3)]]], False, [[body(1)], [[body(2)], [body(3)]]]),
        ([[[fill(1)]]], False, [[body(1)]]),
    ],
)
def test_nesting(fills: list[list[list[Fill]]], expected: object, *, single: bool) -> None:
    assert answer(fills, single=single) == expected


def test_scores_and_texts_come_back_as_they_were() -> None:
    scores = [1.0, 0.1, 1 / 3, 5e-324, 2.2250738585072014e-308, 0.0, 1e-7, 0.30000000000000004]
    text = 'Zürich 😀\u2028 \x00 "quoted" \\ </script> "score":null'
    fills = [Fill(score, 7, "##ü", text) for score in scores]
    read = answer([[fills]], single=True)
    assert [one["score"] for one in read] == scores
    assert {one["sequence"] for one in read} == {text}
    assert {one["token_str"] for one in read} == {"##ü"}


def test_a_score_that_is_no_number_is_not_answered() -> None:
    # JSON has no NaN.
    broken = Fill(math.nan, 7, "x", "y")
    with pytest.raises(ValueError, match="NaN"):
        answer([[[fill(1), broken]]], single=True)


def test_absent_and_null_are_the_same() -> None:
    # Clients omit `parameters` or send null, {} or fields with the value null.
    for parameters in ("", ', "parameters": null', ', "parameters": {}'):
        content = f'{{"inputs": "x"{parameters}}}'.encode()
        read = request_of(FILL_MASK).read(content, "application/json", LIMITS)
        assert read.texts == ["x"]
    content = b'{"inputs": ["x"], "parameters": {"top_k": null, "targets": null}}'
    read = request_of(FILL_MASK).read(content, "application/json", LIMITS)
    assert read.asked().parameters == [FillMaskParameters()]


def test_choices_have_names_and_nulls_are_no_defaults() -> None:
    # Generators of clients make a field with a default mandatory.
    schemas = request_of(FILL_MASK).model_json_schema()["$defs"]
    assert schemas["OnLongText"]["enum"] == ["error", "window"]
    assert set(schemas) == {
        *("FillMaskParameters", "HuggingFaceOptions", "Pair"),
        *("Granularity", "OnError", "OnLongText", "Order", "Strategy"),
    }
    assert '"default"' not in json.dumps(schemas)


def test_a_number_without_a_fraction_is_a_whole_number() -> None:
    # JSON does not distinguish 5.0 from 5.
    content = b'{"inputs": "x", "parameters": {"top_k": 5.0, "max_word_tokens": 2e0}}'
    read = request_of(FILL_MASK).read(content, "application/json", LIMITS)
    assert read.asked().parameters == [FillMaskParameters(top_k=5, max_word_tokens=2)]
    assert type(read.asked().parameters[0].top_k) is int


def test_the_document_describes_every_field_of_a_fill() -> None:
    # Files have the same fields, because their columns come from the same list.
    schema = FillBody.model_json_schema()
    assert schema["properties"].keys() == FILL_FIELDS.keys()
    assert all("description" in field for field in schema["properties"].values())
    required = [field.name for field in fields(Fill) if field.default is MISSING]
    assert schema["required"] == required
