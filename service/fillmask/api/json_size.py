"""Limit on the number of values in a JSON text, checked before parsing.

One byte of JSON can become 24 bytes of Python objects. For example, each `[],` in `[[],[],[]]`
has three bytes and becomes a list of 64 bytes and a reference of 8 bytes. In contrast, a megabyte
of text in a few strings remains a megabyte.
"""

import numpy as np

from fillmask.errors import InvalidRequestError

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
