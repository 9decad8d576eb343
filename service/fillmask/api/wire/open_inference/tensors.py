"""Tensors of the Open Inference Protocol, in JSON or in binary form.

The binary form is an extension of the protocol, which Triton calls "binary tensor data". An HTTP
header gives the length of the JSON. The bytes of the tensors follow the JSON, in the order in which
the JSON lists the tensors.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fillmask.errors import (
    MAX_QUOTED_CHARS,
    InvalidRequestError,
    MalformedRequestError,
    quote,
)

PLATFORM = "onnxruntime_onnx"
TEXT, TEXT_PAIR, TARGETS = "text", "text_pair", "targets"
MAX_AXES = 8

_LENGTH = struct.Struct("<I")  # length in bytes before each element of a BYTES tensor
_DTYPES = {"FP32": "<f4", "INT64": "<i8"}


@dataclass(frozen=True, slots=True)
class WireTensor:
    """A tensor of a response.

    Attributes:
        datatype: BYTES, FP32 or INT64.
        values: elements in row-major order, which are texts for BYTES and numbers otherwise.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: Sequence[Any]

    def to_json(self) -> dict[str, Any]:
        return {**self._head(), "data": list(self.values)}

    def to_bytes(self) -> tuple[dict[str, Any], bytes]:
        """Return the JSON of the tensor without values and the bytes of the values."""
        if self.datatype == "BYTES":
            texts = [value.encode() for value in self.values]
            content = b"".join(_LENGTH.pack(len(text)) + text for text in texts)
        else:
            content = np.array(self.values, dtype=_DTYPES[self.datatype]).tobytes()
        return {**self._head(), "parameters": {"binary_data_size": len(content)}}, content

    def _head(self) -> dict[str, Any]:
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


def label_of(name: str) -> str:
    """Return the name of a tensor for error messages, in quotes unless the name is ordinary."""
    is_ordinary = name.isprintable() and 0 < len(name) <= MAX_QUOTED_CHARS
    return name if is_ordinary else quote(name)


def read_texts(name: str, content: bytes) -> list[str]:
    """Decode the elements of a BYTES tensor, or raise MalformedRequestError."""
    try:
        return [element.decode() for element in _elements(content)]
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise MalformedRequestError(
            f"The bytes of the input {quote(name)} must be UTF-8 texts, each after its length in "
            "four bytes."
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
    """Raise InvalidRequestError if a shape does not match the number of elements."""
    if len(shape) > MAX_AXES:
        raise InvalidRequestError(
            f"The shape of the input {quote(name)} must have at most {MAX_AXES} axes "
            f"(got {len(shape)})."
        )
    # math.prod must not multiply an axis above the count, because the axis may have thousands of
    # digits
    fits = bool(shape) and all(0 <= axis <= count for axis in shape)
    if not fits or math.prod(shape) != count:
        shown = f"{[*map(_shown, shape)]}".replace("'", "")
        raise InvalidRequestError(
            f"The input {quote(name)} has the shape {shown}; the shape must have at least one "
            f"axis, with sizes from 0 to {count} and the product {count}, the number of elements."
        )


def _shown(axis: int) -> str:
    return str(axis) if axis.bit_length() <= 64 else "a number of more than 64 bits"


def split_body(body: bytes, json_bytes: str | None) -> tuple[bytes, bytes]:
    """Split a body into its JSON and the binary tensors after it.

    Args:
        json_bytes: value of the header Inference-Header-Content-Length, None if all is JSON.

    Raises:
        MalformedRequestError: the header is wrong or exceeds the length of the body.
    """
    if json_bytes is None:
        return body, b""
    # isdecimal instead of isdigit, because "²" is a digit that int() rejects
    if not (json_bytes.isascii() and json_bytes.isdecimal() and len(json_bytes) < 12):
        raise MalformedRequestError(
            "Inference-Header-Content-Length must be a whole number of at most 11 digits "
            f"(got {quote(json_bytes)})."
        )
    length = int(json_bytes)
    if length > len(body):
        raise MalformedRequestError(
            f"Inference-Header-Content-Length must be at most {len(body)}, the size of the body in "
            f"bytes (got {length})."
        )
    return body[:length], body[length:]
