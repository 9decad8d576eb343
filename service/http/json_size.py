"""A bound on the values of a JSON text, checked before it is parsed.

A byte of JSON may become 24 bytes of Python objects: `[[],[],` is a list of 64 bytes for every
three. A megabyte of text in a few strings remains a megabyte.
"""

import numpy as np

from service.errors import InvalidRequestError

# 10,000 targets are as many values; 65,536 values take up to 8 MB
MAX_VALUES = 2**16
# larger bodies, where a server allows them, may have more values
_BYTES_PER_VALUE = 16
# each value but the first follows one of these
_MARKS = b"[{,:"
_QUOTE = ord('"')
_CHUNK_BYTES = 2**16


def check_value_count(content: bytes, label: str) -> None:
    """Reject a JSON text of more values than a request can use.

    Args:
        content: the text; it need not be valid.
        label: the text's name in errors.

    Raises:
        InvalidRequestError: it has more than MAX_VALUES, and more than one for 16 bytes.
    """
    most = max(MAX_VALUES, len(content) // _BYTES_PER_VALUE)
    # the marks in strings count here, to spare almost all bodies the closer look
    if len(content) <= most or sum(content.count(mark) for mark in _MARKS) <= most:
        return
    if (values := _marks_outside_strings(content)) > most:
        raise InvalidRequestError(f"{label} has {values} JSON values; at most {most} are allowed.")


def _marks_outside_strings(content: bytes) -> int:
    """Count in chunks: arrays as long as the content would take several times its memory."""
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
