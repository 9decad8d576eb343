"""Encoding of tensors as binary data, compared with tritonclient's encoding."""

import numpy as np
import pytest
from tritonclient.utils import deserialize_bytes_tensor, serialize_byte_tensor

from fillmask.api.wire.open_inference.tensors import WireTensor, check_shape, read_texts, split_body
from fillmask.errors import InvalidRequestError, MalformedRequestError

TEXTS = ["", "a", "Paris is the [MASK].", "日本 👩\u200d👩", "x" * 70_000]


def test_texts_are_read_as_the_client_writes_them() -> None:
    # In the client's encoding, the length in bytes precedes each text.
    encoded = [text.encode() for text in TEXTS]
    content = serialize_byte_tensor(np.array(encoded, dtype=np.object_)).item()
    assert read_texts("text", content) == TEXTS
    assert read_texts("text", b"") == []


def test_tensors_are_written_as_the_client_reads_them() -> None:
    head, content = WireTensor("s", "BYTES", (5,), TEXTS).to_bytes()
    assert [text.decode() for text in deserialize_bytes_tensor(content)] == TEXTS
    assert head == {
        "name": "s",
        "datatype": "BYTES",
        "shape": [5],
        "parameters": {"binary_data_size": len(content)},
    }
    _, content = WireTensor("f", "FP32", (2,), [0.25, 1e-9]).to_bytes()
    assert np.frombuffer(content, np.float32).tolist() == [0.25, np.float32(1e-9)]
    _, content = WireTensor("i", "INT64", (2,), [-1, 2**40]).to_bytes()
    assert np.frombuffer(content, np.int64).tolist() == [-1, 2**40]


@pytest.mark.parametrize(
    "content",
    [b"\x01", b"\x02\0\0\0a", b"\xff\xff\xff\xffab", b"\x01\0\0\0\xff", b"\x01\0\0\0a\x01"],
)
def test_bytes_that_are_no_texts(content: bytes) -> None:
    # The cases are an incomplete length, a length beyond the end, and bytes that are not UTF-8.
    with pytest.raises(MalformedRequestError, match='"text" must be UTF-8 texts'):
        read_texts("text", content)


@pytest.mark.parametrize(
    ("shape", "count", "shown"),
    [
        (
            [2],
            3,
            "has the shape [2]; the shape must have at least one axis, with sizes from 0 to 3",
        ),
        ([], 0, "has the shape []; the shape must have"),
        ([-1], 1, "has the shape [-1]; the shape must have"),
        ([-1, -2], 2, "has the shape [-1, -2];"),
        ([0], 1, "has the shape [0];"),
        ([2, 2], 2, "has the shape [2, 2];"),
        ([1, 10**30], 1, "has the shape [1, a number of more than 64 bits]; the shape must have"),
        ([1] * 9, 1, "must have at most 8 axes (got 9)."),
    ],
)
def test_shapes_that_do_not_fit(shape: list[int], count: int, shown: str) -> None:
    # The product of the axis lengths must equal the number of elements.
    with pytest.raises(InvalidRequestError) as caught:
        check_shape("t", shape, count)
    assert shown in caught.value.text


def test_shapes_that_fit() -> None:
    # Some clients add axes of length 1.
    check_shape("t", [3], 3)
    check_shape("t", [3, 1], 3)
    check_shape("t", [1, 3], 3)
    check_shape("t", [0], 0)
    check_shape("t", [1] * 8, 1)


def test_a_body_is_split_where_the_header_says() -> None:
    # Without the header Inference-Header-Content-Length, the entire body is JSON.
    assert split_body(b"{}ab", "2") == (b"{}", b"ab")
    assert split_body(b"{}", None) == (b"{}", b"")
    for wrong in ("-1", "5", "x", "", "²", "9" * 5000):
        with pytest.raises(MalformedRequestError, match="Inference-Header-Content-Length"):
            split_body(b"{}ab", wrong)
