"""Strict JSON reader of all endpoints and of JSONL files (RFC 8259)."""

import pytest

from fillmask.api.request_body import read_json
from fillmask.errors import FillMaskError
from fillmask.strict_json import parse_json


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON"],
)
def test_reads_json(content_type: str) -> None:
    body = '{"a": [1, 2.5, null, true, "é", "\\ud83d\\ude00"]}'.encode()
    assert read_json(body, content_type) == {"a": [1, 2.5, None, True, "é", "😀"]}


NOT_JSON = "The body is not valid JSON ("
HALF = "The body has an unpaired surrogate escape"
# (body, status, start of the message) of all rejected bodies, for every endpoint
BAD: list[tuple[bytes, int, str]] = [
    (b"{", 400, f"{NOT_JSON}expecting property name enclosed"),
    (b'{"a": ', 400, f"{NOT_JSON}expecting value at line 1, column 7); correct the syntax."),
    (b'{"a": 1} x', 400, f"{NOT_JSON}extra data at line 1, column 10);"),
    (b'{"a": "\\x"}', 400, f"{NOT_JSON}invalid \\escape at line 1, column 8);"),
    (b'{"a": "b\nc"}', 400, f"{NOT_JSON}invalid control character at line 1, column 9);"),
    (b"\xff", 400, "The body is not valid UTF-8 at byte 1; encode it as UTF-8."),
    ('{"a": "é"}'.encode("utf-16"), 400, "The body is not valid UTF-8 at byte 1; encode"),
    (b"\xef\xbb\xbf{}", 400, f"{NOT_JSON}unexpected byte order mark at line 1, "),
    (b'{"a": NaN}', 400, "The body contains NaN, which is not a JSON number;"),
    (b'{"a": Infinity}', 400, "The body contains Infinity, which is not a JSON number;"),
    (b"1" * 5000, 400, "The body has a number with too many digits; use at most 4300"),
    (b'{"a": 1, "a": 2}', 422, 'The field "a" is a duplicate; remove it.'),
    (b'{"b": {"a": 1, "a": 1}}', 422, 'The field "a" is a duplicate; remove it.'),
    (b'{"a": "\\ud800"}', 422, HALF),
    (b'{"\\ud800": 1}', 422, HALF),
    (b'{"\\udbff":1,"\\udbff":2}', 422, HALF),
]


@pytest.mark.parametrize(("content", "status", "reason"), BAD)
def test_rejects(content: bytes, status: int, reason: str) -> None:
    # The parser reads each row of a file alone, so line 1 of a row is a later line of the file.
    with pytest.raises(FillMaskError) as of_body:
        read_json(content, "application/json")
    with pytest.raises(FillMaskError) as of_row:
        parse_json(content, "Row 7", first_line=7)
    assert of_body.value.status == of_row.value.status == status
    assert of_body.value.text.startswith(reason)
    expected = reason.replace("The body", "Row 7").replace(" line 1, ", " line 7, ")
    assert of_row.value.text.startswith(expected)


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/jsonp"])
def test_rejects_another_content_type(content_type: str | None) -> None:
    with pytest.raises(FillMaskError) as caught:
        read_json(b"{}", content_type)
    assert caught.value.status == 415


def test_rejects_deep_nesting() -> None:
    # a thread of Python 3.14 reads 65,194 levels
    with pytest.raises(FillMaskError) as caught:
        parse_json(b"[" * 1_000_000, "Row 7")
    assert caught.value.status == 400
    assert caught.value.text == "Row 7 is nested too deeply; use fewer levels."
