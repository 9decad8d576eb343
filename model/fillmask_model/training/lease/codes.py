"""Weights as integers with a scale per row, so that they fit through a narrow door.

A weight of 8 bits has the precision of the exported model, which is enough to train on from it. A
weight of 16 bits is at most a 65,534th of its row's largest magnitude away from the float32 value.
Vectors are small and stay float32. zlib then saves 10 to 15 % of the high bytes, since most weights
are small.

Shapes: R rows, C columns.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Shapes = Mapping[str, tuple[int, ...]]
_FLOAT_BYTES = 4


def encode_weights(weights: Mapping[str, Tensor], bits: int) -> bytes:
    """Encode float32 tensors in the order of their names.

    Args:
        bits: 8 or 16, the size of the integers.
    """
    pieces: list[bytes] = []
    for name in sorted(weights):
        weight = weights[name].detach().float().cpu()
        if weight.ndim < 2:
            pieces.append(weight.numpy().tobytes())
            continue
        rows_RC = weight.flatten(1)
        scale_R1 = _scales(rows_RC, bits)
        codes = (rows_RC / scale_R1).round().to(torch.int16 if bits == 16 else torch.int8).numpy()
        pieces += [scale_R1.numpy().tobytes(), _planes(codes)]
    return zlib.compress(b"".join(pieces), level=1)


def decode_weights(content: bytes, shapes: Shapes, bits: int) -> dict[str, Tensor]:
    """Decode the tensors of `encode_weights` to float32.

    Raises:
        ValueError: the content does not have these shapes, or is damaged.
    """
    try:
        plain = zlib.decompress(content)
    except zlib.error as error:
        raise ValueError(f"the weights must be compressed by zlib ({error})") from None
    if len(plain) != plain_bytes(shapes, bits):
        raise ValueError(
            f"the weights must have {plain_bytes(shapes, bits)} bytes for their shapes "
            f"(got {len(plain)})"
        )
    weights, start = {}, 0

    def take(count: int) -> bytes:
        nonlocal start
        start += count
        return plain[start - count : start]

    for name in sorted(shapes):
        shape = shapes[name]
        size = int(np.prod(shape))
        if len(shape) < 2:
            values = np.frombuffer(take(_FLOAT_BYTES * size), np.float32)
        else:
            scales = np.frombuffer(take(_FLOAT_BYTES * shape[0]), np.float32)[:, None]
            codes = _from_planes(take(size * bits // 8), bits).reshape(shape[0], -1)
            values = codes * scales
        weights[name] = torch.from_numpy(values.reshape(shape).copy())
    return weights


def plain_bytes(shapes: Shapes, bits: int) -> int:
    """Return the size of encoded weights before compression, which they hardly exceed after it."""
    total = 0
    for shape in shapes.values():
        size = int(np.prod(shape))
        matrix = _FLOAT_BYTES * shape[0] + size * bits // 8 if len(shape) > 1 else 0
        total += matrix or _FLOAT_BYTES * size
    return total


def _scales(rows_RC: Tensor, bits: int) -> Tensor:
    """Return the step (R, 1) of each row."""
    largest = rows_RC.abs().amax(dim=1, keepdim=True)
    return torch.where(largest > 0, largest / (2 ** (bits - 1) - 1), 1.0)


def _planes(codes: NDArray[np.integer]) -> bytes:
    """Return all low bytes and then all high bytes, because only high bytes compress."""
    return codes.reshape(-1, 1).view(np.uint8).T.tobytes()


def _from_planes(content: bytes, bits: int) -> NDArray[np.integer]:
    planes = np.frombuffer(content, np.uint8).reshape(bits // 8, -1)
    codes: NDArray[np.integer] = np.ascontiguousarray(planes.T).view(f"<i{bits // 8}")
    return codes
