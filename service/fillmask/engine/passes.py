"""Model passes and their outputs.

Shapes, as in `fillmask.engine.batch_arrays`: T tokens of one text, m masks of one text, c pooled
tokens of one text, M masks of all texts, N' texts that the head reads, V' values of the head for
one text, such as its labels, K targets, k top_k.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fillmask.arrays import FloatArray, IntArray
from fillmask.bundles.description import Pooling

NO_POSITIONS = np.empty(0, dtype=np.int64)
_NO_IDS = np.empty((0, 0), dtype=np.int64)
_NO_LOGITS = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class ModelPass:
    """Input of one pass, for the masks of a text or for a head that reads the text.

    Attributes:
        input_ids: (T,) int64, including special tokens.
        mask_positions: (m,) int64, ascending positions in input_ids.
        top_k: number of ids to return for each mask, at least 1.
        target_ids: (m, K) int64, token ids to score. K may be 0.
        token_types: (T,) int64, the part of a pair to which each token belongs. None if all
            tokens have type 0.
        pooled_positions: (c,) int64, ascending positions in input_ids that the head reads. Empty
            for a pass with masks.
        reduce: function that the worker calls with the values (V',) of the head, by default none.
    """

    input_ids: IntArray
    mask_positions: IntArray
    top_k: int
    target_ids: IntArray
    token_types: IntArray | None = None
    pooled_positions: IntArray = field(default_factory=lambda: NO_POSITIONS)
    reduce: Callable[[FloatArray], Any] | None = None

    @classmethod
    def for_head(
        cls,
        input_ids: IntArray,
        token_types: IntArray | None,
        pooling: Pooling | Literal["tokens"],
        reduce: Callable[[FloatArray], Any] | None = None,
    ) -> "ModelPass":
        """Return a pass without masks, whose output is that of the head.

        Args:
            pooling: "first" for a head that reads only the first token, else all tokens.
        """
        pooled = np.arange(1 if pooling == "first" else len(input_ids))
        return cls(input_ids, NO_POSITIONS, 1, no_targets(0), token_types, pooled, reduce)

    @property
    def tokens(self) -> int:
        """Length of the text in tokens, which is the cost of the pass."""
        return len(self.input_ids)


def no_targets(masks: int) -> IntArray:
    """Return the empty target ids (m, 0) of a pass without targets."""
    return np.empty((masks, 0), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PassOutputs:
    """Outputs of the served graph for one pass.

    Attributes:
        top_ids: (M, k) int64, by descending log-probability.
        top_log_probs: (M, k) float32.
        target_log_probs: (M, K) float32.
        pooled: (V',) float32 values of the head, or (c, V') of a head with values of each token, or
            what the pass reduces them to. None if the head doesn't read the text.
    """

    top_ids: IntArray = field(default_factory=lambda: _NO_IDS)
    top_log_probs: FloatArray = field(default_factory=lambda: _NO_LOGITS)
    target_log_probs: FloatArray = field(default_factory=lambda: _NO_LOGITS)
    pooled: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class BatchOutputs(PassOutputs):
    """Outputs of the served graph for all passes of a batch.

    Attributes:
        pooled: (N', V') float32, empty for a head with values of each token.
        tokens: (C, V') float32 of such a head.
        threads: number of threads that the run could use at its start.
    """

    pooled: FloatArray = field(default_factory=lambda: _NO_LOGITS)
    tokens: FloatArray = field(default_factory=lambda: _NO_LOGITS)
    threads: int = 1


# function that computes passes and returns their outputs in the same order
Submit = Callable[[Sequence[ModelPass]], Awaitable[Sequence[PassOutputs]]]
