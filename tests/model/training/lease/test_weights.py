"""Weights as integers with a scale per row."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fillmask_model.training.lease.weights import decode_weights, encode_weights, plain_bytes


def weights() -> dict[str, Tensor]:
    """Return a matrix with rows of different sizes, a row of zeros, and a vector."""
    generator = torch.Generator().manual_seed(3)
    matrix = torch.randn(6, 50, generator=generator) * torch.tensor(
        [1e-3, 1.0, 50.0, 0.2, 0.0, 3.0]
    ).unsqueeze(1)
    return {"table": matrix, "bias": torch.randn(7, generator=generator)}


SHAPES: dict[str, tuple[int, ...]] = {"table": (6, 50), "bias": (7,)}


@pytest.mark.parametrize("bits", [8, 16])
def test_a_weight_is_half_a_step_away_at_most(bits: int) -> None:
    given = weights()
    decoded = decode_weights(encode_weights(given, bits), SHAPES, bits)
    step = given["table"].abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    assert ((decoded["table"] - given["table"]).abs() <= 0.501 * step).all()
    assert torch.equal(decoded["bias"], given["bias"])
    assert {name: tensor.dtype for name, tensor in decoded.items()} == {
        "table": torch.float32,
        "bias": torch.float32,
    }


@pytest.mark.parametrize("bits", [8, 16])
def test_encoding_again_changes_nothing(bits: int) -> None:
    # Weights that travel twice lose precision once.
    once = decode_weights(encode_weights(weights(), bits), SHAPES, bits)
    again = decode_weights(encode_weights(once, bits), SHAPES, bits)
    for name, tensor in once.items():
        torch.testing.assert_close(again[name], tensor, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("bits", "expected"), [(8, 6 * 4 + 300 + 28), (16, 6 * 4 + 600 + 28)])
def test_the_size_is_known_before(bits: int, expected: int) -> None:
    assert plain_bytes(SHAPES, bits) == expected
    assert len(encode_weights(weights(), bits)) < expected + 50


def test_content_of_other_shapes_or_other_content_is_refused() -> None:
    content = encode_weights(weights(), 8)
    with pytest.raises(ValueError, match=r"must have 404 bytes for their shapes \(got 352\)"):
        decode_weights(content, SHAPES | {"table": (6, 58), "more": ()}, 8)
    with pytest.raises(ValueError, match="must be compressed by zlib"):
        decode_weights(content[:-20], SHAPES, 8)
