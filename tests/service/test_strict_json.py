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


@pytest.mark.parametrize(("body", "status", "reason"), BAD)
def test_rejects(body: bytes, status: int, reason: str) -> None:
    with pytest.raises(FillMaskError) as caught:
        read_json(body, "application/json")
    assert caught.value.status == status
    assert caught.value.text.startswith(reason)


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_rejects_an_empty_body(body: bytes) -> None:
    with pytest.raises(FillMaskError) as caught:
        read_json(body, "application/json")
    assert caught.value.status == 400
    assert caught.value.text == "The body is empty; it must be a JSON object."


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/jsonp"])
def test_rejects_another_content_type(content_type: str | None) -> None:
    with pytest.raises(FillMaskError) as caught:
        read_json(b"{}", content_type)
    assert caught.value.status == 415


@pytest.mark.parametrize(("content", "status", "reason"), BAD)
def test_errors_have_the_given_name_and_count_lines_from_the_first(
    content: bytes, status: int, reason: str
) -> None:
    # The parser reads each row alone, so line 1 of a row is a later line of the file.
    with pytest.raises(FillMaskError) as caught:
        parse_json(content, "Row 7", first_line=7)
    expected = reason.replace("The body", "Row 7").replace(" line 1, ", " line 7, ")
    assert caught.value.status == status
    assert caught.value.text.startswith(expected)


def test_rejects_deep_nesting() -> None:
    # a thread of Python 3.14 reads 65,194 levels
    with pytest.raises(FillMaskError) as caught:
        parse_json(b"[" * 1_000_000, "Row 7")
    assert caught.value.status == 400
    assert caught.value.text == "Row 7 is nested too deeply; use fewer levels."
