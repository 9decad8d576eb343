"""What each head of the served graph has: nodes, PyTorch's results and golden results.

Shapes: N texts, T tokens, M masked positions of all texts, V vocabulary, X numbers of a text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask.bundles.bundle import Bundle
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask.tasks.golden import GoldenTolerance, largest_int8_difference
from fillmask_export.graph.served import GraphHead
from fillmask_export.heads.errors import VerificationError
from fillmask_export.heads.samples import Samples
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.encoder import TiedEncoder

# between the fp32 graph and PyTorch: nats of fills, and of logits or weights the difference
# relative to the largest one if that is above 1
MAX_GRAPH_DIFFERENCE = 1e-3
# The same for golden results in fp32, because other CPUs add numbers in another order.
GOLDEN_FP32_TOLERANCE = 2e-3


class Expected(Protocol):
    """PyTorch's results for a task on the verification texts."""

    def compare(self, runtime: Runtime) -> dict[str, Any]:
        """Return the figures of the fp32 graph."""

    def measure(self, runtime: Runtime) -> dict[str, Any]:
        """Return the figures of the int8 graph."""


class Head(GraphHead, ABC):
    """Head for one task of a bundle.

    Attributes:
        field: field of its figures among those of the verification, or "" for no field of its own.
        records: field of its golden results.
        tolerance: function that returns the bounds on differences of its golden results.
    """

    field: ClassVar[str]
    records: ClassVar[str]
    tolerance: ClassVar[staticmethod[[Bundle], GoldenTolerance]]

    @classmethod
    @abstractmethod
    def of(cls, checkpoint: Checkpoint) -> Self: ...

    def description(self) -> dict[str, Any]:
        """Return the fields of bundle.json about this head."""
        return {}

    @abstractmethod
    def expect(self, model: TiedEncoder, samples: Samples) -> Expected:
        """Compute PyTorch's results.

        Args:
            model: fp32 encoder.

        Raises:
            VerificationError: this needs a text of at most `max_tokens` tokens, and there is none.
        """

    @classmethod
    @abstractmethod
    def golden(
        cls, samples: Samples, runtime: Runtime, int8: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Return the golden results of a graph and their tolerance, for bundle.json.

        Args:
            int8: figures of this head in int8. None for a bundle in fp32.
        """

    @staticmethod
    @abstractmethod
    def numbers(record: dict[str, Any]) -> dict[tuple[int, ...], float]:
        """Return the numbers of one golden result by their places in it."""


def golden_tolerance(int8_p99: float | None, largest: float = 1.0) -> float:
    """Return the maximum difference of a golden number: of nats, or of logits or weights.

    Args:
        int8_p99: 99th percentile of the differences between int8 and fp32. None for fp32.
        largest: largest absolute number, to which the tolerance of fp32 is relative if above 1.
    """
    if int8_p99 is not None:
        return largest_int8_difference(int8_p99)
    return GOLDEN_FP32_TOLERANCE * max(1.0, largest)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedNumbers(ABC):
    """PyTorch's numbers for real and for random texts.

    Attributes:
        requests: passes of real texts, followed by passes of random tokens.
        real: number of passes of real texts.
        exact: (N, X) expected numbers.
    """

    requests: Sequence[ModelPass]
    real: int
    exact: NDArray[np.float32]

    @staticmethod
    @abstractmethod
    def found(runtime: Runtime, requests: Sequence[ModelPass]) -> Iterable[NDArray[np.float32]]:
        """Return a graph's numbers (X,) of one text after the other."""

    def difference(self, runtime: Runtime, numbers: str) -> float:
        """Return the largest absolute difference between the fp32 graph's numbers and PyTorch's.

        Args:
            numbers: what they are, for the message.

        Raises:
            VerificationError: the difference is above 1e-3 times the largest absolute number. If no
                number is above 1, the limit is 1e-3.
        """
        rows = zip(self.found(runtime, self.requests), self.exact, strict=True)
        difference = float(np.max([np.abs(found - exact).max() for found, exact in rows]))
        bound = MAX_GRAPH_DIFFERENCE * max(1.0, float(np.abs(self.exact).max()))
        if not difference <= bound:  # also true for NaN
            raise VerificationError(
                f"the {numbers} of the graph must differ from the PyTorch encoder's by at most "
                f"{bound:.2g} (got {difference:.2g}); report a bug of the export"
            )
        return difference


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
