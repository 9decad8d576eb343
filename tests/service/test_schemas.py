"""The bodies: how answers are nested, and the limits in the schema."""

import math

from service.fill_mask import Fill
from service.schemas import MAX_TARGETS, FillMaskBody, Limits, answer

LIMITS = Limits(max_tokens=32, max_texts=3, max_masks=5, max_top_k=9, max_body_bytes=1000)


def fill(token: int) -> Fill:
    """A fill that is told by its token."""
    return Fill(token=token, token_str=f"t{token}", log_prob=-float(token), sequence=f"s{token}")


def body(token: int) -> dict[str, object]:
    """What the fill looks like in an answer."""
    return {
        "score": math.exp(-token),
        "token": token,
        "token_str": f"t{token}",
        "sequence": f"s{token}",
    }


def test_one_text_with_one_mask() -> None:
    """A flat list of fills."""
    assert answer([[[fill(1), fill(2)]]], single=True) == [body(1), body(2)]


def test_one_text_with_several_masks() -> None:
    """One list per mask."""
    assert answer([[[fill(1)], [fill(2)]]], single=True) == [[body(1)], [body(2)]]


def test_several_texts() -> None:
    """One list per text, nested per mask where a text has several."""
    assert answer([[[fill(1)]], [[fill(2)], [fill(3)]]], single=False) == [
        [body(1)],
        [[body(2)], [body(3)]],
    ]


def test_a_list_of_one_text_is_a_list() -> None:
    """Who sends a list gets a list."""
    assert answer([[[fill(1)]]], single=False) == [[body(1)]]


def test_absent_and_null_are_the_same() -> None:
    """Clients send parameters as nothing, null, {} or nulls."""
    for parameters in ("", ', "parameters": null', ', "parameters": {}'):
        content = f'{{"inputs": "x"{parameters}}}'.encode()
        read = FillMaskBody.read(content, "application/json", LIMITS)
        assert read.texts == ["x"]
    content = b'{"inputs": ["x"], "parameters": {"top_k": null, "targets": null}}'
    read = FillMaskBody.read(content, "application/json", LIMITS)
    assert read.parameters is not None
    assert read.parameters.top_k is None
    assert read.parameters.targets is None


def test_the_schema_shows_the_limits() -> None:
    """The OpenAPI page has this server's numbers, in one piece."""
    schema = FillMaskBody.schema_with_limits(max_texts=3, max_top_k=9)
    assert "$defs" not in schema
    assert schema["additionalProperties"] is False
    texts = schema["properties"]["inputs"]["anyOf"][1]
    assert (texts["minItems"], texts["maxItems"]) == (1, 3)
    parameters = schema["properties"]["parameters"]["anyOf"][0]["properties"]
    assert parameters["top_k"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 9}
    assert parameters["targets"]["anyOf"][0]["maxItems"] == MAX_TARGETS
