"""JSON bodies: parsed by the book, or refused."""

import pytest

from service.api.strict_json import parse_json, read_json
from service.errors import FillMaskError


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON"],
)
def test_reads_json(content_type: str) -> None:
    """Every way to say application/json is understood."""
    body = '{"a": [1, 2.5, null, true, "é", "\\ud83d\\ude00"]}'.encode()
    assert read_json(body, content_type) == {"a": [1, 2.5, None, True, "é", "😀"]}


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 400, "The body is empty; it must be a JSON object."),
        (b" \n", 400, "The body is empty; it must be a JSON object."),
        (b"{", 400, "The body is not valid JSON: expecting property name enclosed"),
        (b'{"a": 1,}', 400, "The body is not valid JSON: "),
        (b'{"a": 1} x', 400, "The body is not valid JSON: extra data (line 1, column 10)."),
        (b'{"a": "\\x"}', 400, "The body is not valid JSON: invalid \\escape (line 1, column 8)."),
        (b"\xff", 400, "The body is not valid UTF-8."),
        (b"\xef\xbb\xbf{}", 400, "The body is not valid JSON: unexpected byte order mark (line 1"),
        (b'{"a": NaN}', 400, "The body is not valid JSON: NaN is not a JSON number."),
        (b'{"a": -Infinity}', 400, "The body is not valid JSON: -Infinity is not a JSON number."),
        (b"[" * 60_000, 400, "The body is nested too deeply."),
        (b"1" * 5000, 400, "The body has a number with too many digits."),
        (b'{"a": 1, "a": 2}', 422, 'The field "a" is a duplicate; each field may appear once.'),
        (
            b'{"b": {"a": 1, "a": 1}}',
            422,
            'The field "a" is a duplicate; each field may appear once.',
        ),
        (b'{"a": "\\ud800"}', 422, "The body has an unpaired surrogate escape"),
        (b'{"a": ["\\uDFFF"]}', 422, "The body has an unpaired surrogate escape"),
        (b'{"\\ud800": 1}', 422, "The body has an unpaired surrogate escape"),
        (b'{"\\udbff":1,"\\udbff":2}', 422, "The body has an unpaired surrogate escape"),
    ],
)
def test_refuses(body: bytes, status: int, reason: str) -> None:
    """What is not JSON, or is ambiguous, is told in a sentence."""
    with pytest.raises(FillMaskError) as caught:
        read_json(body, "application/json")
    assert caught.value.status == status
    assert caught.value.text.startswith(reason)


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/jsonp"])
def test_refuses_another_content_type(content_type: str | None) -> None:
    """A body that does not say it is JSON is not read as JSON."""
    with pytest.raises(FillMaskError) as caught:
        read_json(b"{}", content_type)
    assert caught.value.status == 415


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": 1} x', "Row 7 is not valid JSON: extra data (line 7, column 10)."),
        (b"\xff", "Row 7 is not valid UTF-8."),
        (b'{"a": NaN}', "Row 7 is not valid JSON: NaN is not a JSON number."),
        (
            b'{"a": "\\ud800"}',
            "Row 7 has an unpaired surrogate escape, which is not a char",
        ),
        (b"[" * 100_000, "Row 7 is nested too deeply."),
    ],
)
def test_errors_call_things_by_their_names(content: bytes, reason: str) -> None:
    """What is no body is called what the caller calls it, and lines count from where it begins."""
    with pytest.raises(FillMaskError) as caught:
        parse_json(content, "Row 7", first_line=7)
    assert caught.value.text.startswith(reason)
