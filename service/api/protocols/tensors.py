"""Tensors of the Open Inference Protocol, in JSON or in bytes behind it.

The bytes follow the protocol's binary extension (Triton's "binary tensor data"): a header says how
long the JSON is, and the tensors' bytes lie behind it in the order of the JSON.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.errors import InvalidRequestError, MalformedRequestError, quote

MAX_AXES = 8  # of a tensor's shape

_LENGTH = struct.Struct("<I")  # before each element of a BYTES tensor
_DTYPES = {"FP32": "<f4", "INT64": "<i8"}


@dataclass(frozen=True, slots=True)
class WireTensor:
    """A tensor of an answer.

    Attributes:
        name: its name.
        datatype: BYTES, FP32 or INT64.
        shape: its axes.
        values: row by row; texts for BYTES, or else numbers.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: Sequence[Any]

    def to_json(self) -> dict[str, Any]:
        """With its values in JSON."""
        return {**self._head(), "data": list(self.values)}

    def to_bytes(self) -> tuple[dict[str, Any], bytes]:
        """Its description, and its values behind the JSON."""
        if self.datatype == "BYTES":
            texts = [value.encode() for value in self.values]
            content = b"".join(_LENGTH.pack(len(text)) + text for text in texts)
        else:
            content = np.array(self.values, dtype=_DTYPES[self.datatype]).tobytes()
        return {**self._head(), "parameters": {"binary_data_size": len(content)}}, content

    def _head(self) -> dict[str, Any]:
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


def read_texts(name: str, content: bytes) -> list[str]:
    """The elements of a BYTES tensor.

    Raises:
        MalformedRequestError: a length does not fit, or an element is not UTF-8.
    """
    try:
        return [element.decode() for element in _elements(content)]
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise MalformedRequestError(
            f"The bytes of the input {quote(name)} are not texts in UTF-8, each behind its length "
            "in four bytes."
        ) from error


def _elements(content: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(content):
        (length,) = _LENGTH.unpack_from(content, start)
        start += _LENGTH.size + length
        if start > len(content):
            raise IndexError
        yield content[start - length : start]


def check_shape(name: str, shape: Sequence[int], count: int) -> None:
    """Refuse a shape that is not that of as many elements.

    Raises:
        InvalidRequestError: it is not.
    """
    if len(shape) > MAX_AXES:
        raise InvalidRequestError(
            f"The input {quote(name)} has a shape of {len(shape)} axes; at most {MAX_AXES} are "
            "allowed."
        )
    # an axis above the count is wrong, and may have thousands of digits
    fits = bool(shape) and all(0 <= axis <= count for axis in shape)
    if not fits or math.prod(shape) != count:
        shown = f"{[*map(_shown, shape)]}".replace("'", "")
        raise InvalidRequestError(
            f"The input {quote(name)} has the shape {shown} and {count} elements."
        )


def _shown(axis: int) -> str:
    return str(axis) if axis.bit_length() <= 64 else "a number of more than 64 bits"


def split_body(body: bytes, json_bytes: str | None) -> tuple[bytes, bytes]:
    """The JSON of a body, and the bytes behind it.

    Args:
        body: the whole.
        json_bytes: the header Inference-Header-Content-Length, if there is one.

    Raises:
        MalformedRequestError: the header is not a length within the body.
    """
    if json_bytes is None:
        return body, b""
    # isdecimal, not isdigit: "²" is a digit that int() does not take
    if not (json_bytes.isascii() and json_bytes.isdecimal() and len(json_bytes) < 12):
        raise MalformedRequestError("Inference-Header-Content-Length must be a whole number.")
    length = int(json_bytes)
    if length > len(body):
        raise MalformedRequestError(
            f"Inference-Header-Content-Length is {length}, and the body has {len(body)} bytes."
        )
    return body[:length], body[length:]
