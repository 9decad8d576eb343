"""What the comparisons of fills, labels and sparse vectors with PyTorch share.

`fillmask.engine.runtime` runs the graphs, as in production.

Shapes: N texts, T tokens, M masked positions of all texts, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask.arrays import IntArray
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask_model.encoder.encoder import TiedEncoder

# between the fp32 graph and PyTorch: nats of fills, and of logits or weights the difference
# relative to the largest one if that is above 1
MAX_GRAPH_DIFFERENCE = 1e-3
RANDOM_TEXTS = 12  # maximum number
INT8_ADVICE = (
    "Export with --precision fp32, or calibrate with text that resembles the training text"
)


class VerificationError(ValueError):
    """Error for a graph whose verification failed."""


class Expected(Protocol):
    """PyTorch's results for a task on the verification texts."""

    def compare(self, runtime: Runtime) -> dict[str, Any]:
        """Return the figures of the fp32 graph."""

    def measure(self, runtime: Runtime) -> dict[str, Any]:
        """Return the figures of the int8 graph."""


def all_too_long(max_tokens: int) -> VerificationError:
    return VerificationError(
        f"all verification texts have more than {max_tokens} tokens; "
        "give shorter texts with --texts"
    )


def random_inputs(
    vocab_size: int, max_tokens: int, token_types: int, generator: np.random.Generator
) -> list[tuple[IntArray, IntArray | None]]:
    """Return random token ids and types of up to RANDOM_TEXTS lengths, from 3 to `max_tokens`.

    Args:
        token_types: number of token types. With 1, the types are None.
    """
    lengths = np.unique(np.geomspace(min(3, max_tokens), max_tokens, RANDOM_TEXTS).astype(int))
    ids = [generator.integers(0, vocab_size, length) for length in lengths]
    if token_types == 1:
        return [(one, None) for one in ids]
    return [(one, generator.integers(0, token_types, len(one))) for one in ids]


def encoder_logits(model: TiedEncoder, requests: Sequence[ModelPass]) -> Tensor:
    """Compute the logits (M, V) of the PyTorch encoder for passes of equal length.

    Either all passes have token types or no pass has token types.
    """
    input_ids_NT = torch.from_numpy(np.stack([request.input_ids for request in requests]))
    indicator_NT = torch.zeros(input_ids_NT.shape)
    for row_T, request in zip(indicator_NT, requests, strict=True):
        row_T[torch.from_numpy(request.mask_positions)] = 1
    types = [request.token_types for request in requests if request.token_types is not None]
    types_NT = torch.from_numpy(np.stack(types)) if types else None
    logits_MV: Tensor = model(input_ids_NT, indicator_NT, None, types_NT)
    return logits_MV


def graph_difference(
    found: Iterable[NDArray[np.float32]], expected_NX: NDArray[np.float32], numbers: str
) -> float:
    """Return the largest absolute difference between the fp32 graph's numbers and PyTorch's.

    Args:
        found: numbers (X,) of one text after the other, which are many for a large vocabulary.
        numbers: what they are, for the message.

    Raises:
        VerificationError: the difference is above 1e-3 times the largest absolute number. If no
            number is above 1, the limit is 1e-3.
    """
    differences = [np.abs(one - other).max() for one, other in zip(found, expected_NX, strict=True)]
    difference = float(np.max(differences))
    bound = MAX_GRAPH_DIFFERENCE * max(1.0, float(np.abs(expected_NX).max()))
    if not difference <= bound:  # also true for NaN
        raise VerificationError(
            f"the {numbers} of the graph must differ from the PyTorch encoder's by at most "
            f"{bound:.2g} (got {difference:.2g}); report a bug of the export"
        )
    return difference
