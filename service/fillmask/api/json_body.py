"""JSON of a request body."""

import numpy as np

from fillmask.errors import ContentTypeError, InvalidRequestError, MalformedRequestError, quote
from fillmask.strict_json import parse_json


def read_json(body: bytes, content_type: str | None) -> object:
    """Parse the JSON of a request body.

    Raises:
        ContentTypeError: the content type is not application/json.
        MalformedRequestError: the body is empty, or `parse_json` raises this error.
        InvalidRequestError: the body has more values than any valid request, a duplicate field or
            an unpaired surrogate. Such fields and surrogates are ambiguous.
    """
    if (content_type or "").partition(";")[0].strip().lower() != "application/json":
        raise ContentTypeError(
            f"The content type must be application/json (got {quote(content_type or '')})."
        )
    if not body or body.isspace():
        raise MalformedRequestError("The body is empty; it must be a JSON object.")
    check_value_count(body, "The body")
    return parse_json(body, "The body")


# The limit allows 10,000 targets. 65,536 values take up to 8 MB of memory.
MAX_VALUES = 2**16
# allows more values in bodies above the default size limit
_BYTES_PER_VALUE = 16
# every value except the first follows one of these bytes
_MARKS = b"[{,:"
_QUOTE = ord('"')
_CHUNK_BYTES = 2**16


def check_value_count(content: bytes, label: str) -> None:
    """Reject a JSON text with more values than any request needs.

    Args:
        content: JSON text, not necessarily valid.
        label: name of the text in the error message.

    Raises:
        InvalidRequestError: the text has more than MAX_VALUES values and more than one value per 16
            bytes.
    """
    most = max(MAX_VALUES, len(content) // _BYTES_PER_VALUE)
    # a cheap count, which includes marks inside strings, accepts almost every body
    if len(content) <= most or sum(content.count(mark) for mark in _MARKS) <= most:
        return
    if (values := _marks_outside_strings(content)) > most:
        raise InvalidRequestError(
            f"{label} must have at most {most} JSON values (got {values}); send fewer values."
        )


def _marks_outside_strings(content: bytes) -> int:
    """Count the marks in chunks. Arrays for the whole text need several times its memory."""
    if b"\\" in content:
        content = content.replace(rb"\\", b"").replace(rb"\"", b"")
    characters = np.frombuffer(content, dtype=np.uint8)
    marks = np.frombuffer(_MARKS, dtype=np.uint8)
    count = quotes = 0
    for start in range(0, len(characters), _CHUNK_BYTES):
        chunk = characters[start : start + _CHUNK_BYTES]
        quotes_before = quotes + np.cumsum(chunk == _QUOTE)
        count += int(np.count_nonzero(np.isin(chunk, marks) & (quotes_before % 2 == 0)))
        quotes = int(quotes_before[-1])
    return count
