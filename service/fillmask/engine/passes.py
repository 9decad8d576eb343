"""Model passes and their outputs.

Shapes, as in `fillmask.engine.batch_arrays`: T tokens of one text, m masks of one text, c pooled
tokens of one text, M masks of all texts, N' texts whose labels or sparse vectors the graph
computes, L labels, V vocabulary, K targets, k top_k.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from fillmask.arrays import FloatArray, IntArray, check_finite
from fillmask.bundles.description import Pooling

NO_POSITIONS = np.empty(0, dtype=np.int64)
_NO_IDS = np.empty((0, 0), dtype=np.int64)
_NO_LOGITS = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class ModelPass:
    """Input of one pass, for the masks, the labels or the sparse vector of a text.

    Attributes:
        input_ids: (T,) int64, including special tokens.
        mask_positions: (m,) int64, ascending positions in input_ids.
        top_k: number of ids to return for each mask or sparse vector, at least 1.
        target_ids: (m, K) int64, token ids to score. K may be 0.
        token_types: (T,) int64, the part of a pair to which each token belongs. None if all
            tokens have type 0.
        pooled_positions: (c,) int64, ascending positions in input_ids that the classification head
            or a sparse vector reads. Empty for a pass with masks.
    """

    input_ids: IntArray
    mask_positions: IntArray
    top_k: int
    target_ids: IntArray
    token_types: IntArray | None = None
    pooled_positions: IntArray = field(default_factory=lambda: NO_POSITIONS)

    @classmethod
    def for_labels(
        cls, input_ids: IntArray, token_types: IntArray | None, pooling: Pooling
    ) -> "ModelPass":
        """Return a pass without masks, whose output is the logits of the labels."""
        pooled = np.arange(len(input_ids) if pooling == "mean" else 1)
        return cls(input_ids, NO_POSITIONS, 1, no_targets(0), token_types, pooled)

    @classmethod
    def for_vector(
        cls, input_ids: IntArray, token_types: IntArray | None, most: int
    ) -> "ModelPass":
        """Return a pass whose output is a sparse vector of at most `most` dimensions."""
        pooled = np.arange(len(input_ids))
        return cls(input_ids, NO_POSITIONS, most, no_targets(0), token_types, pooled)

    @property
    def tokens(self) -> int:
        """Length of the text in tokens, which is the cost of the pass."""
        return len(self.input_ids)


def no_targets(masks: int) -> IntArray:
    """Return the empty target ids (m, 0) of a pass without targets."""
    return np.empty((masks, 0), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """The dimensions of a vector over the vocabulary whose weights are above 0.

    Attributes:
        indices: (n,) int64, ascending token ids.
        values: (n,) float32 weights.
    """

    indices: IntArray
    values: FloatArray

    @classmethod
    def from_weights(cls, weights_V: FloatArray, most: int) -> "SparseVector":
        """Select the weights above 0, at most the largest `most` of them.

        Raises:
            ValueError: a weight is NaN or infinite.
        """
        check_finite(weights_V)
        indices = np.flatnonzero(weights_V > 0)
        if len(indices) > most:
            # by falling weight, and by id among equal weights
            best = np.argsort(-weights_V[indices], kind="stable")[:most]
            indices = np.sort(indices[best])
        return cls(indices, weights_V[indices])


@dataclass(frozen=True, slots=True, eq=False)
class PassOutputs:
    """Outputs of the served graph for one pass. N' is 0 or 1.

    Attributes:
        top_ids: (M, k) int64, by descending log-probability.
        top_log_probs: (M, k) float32.
        target_log_probs: (M, K) float32.
        label_logits: (N', L) float32.
        vector: the sparse vector of a text, None for other passes.
    """

    top_ids: IntArray = field(default_factory=lambda: _NO_IDS)
    top_log_probs: FloatArray = field(default_factory=lambda: _NO_LOGITS)
    target_log_probs: FloatArray = field(default_factory=lambda: _NO_LOGITS)
    label_logits: FloatArray = field(default_factory=lambda: _NO_LOGITS)
    vector: SparseVector | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BatchOutputs(PassOutputs):
    """Outputs of the served graph for all passes of a batch.

    Attributes:
        sparse_weights: (N', V) float32 weights of the sparse vectors.
        threads: number of threads that the run could use at its start.
    """

    sparse_weights: FloatArray = field(default_factory=lambda: _NO_LOGITS)
    threads: int = 1


# function that computes passes and returns their outputs in the same order
Submit = Callable[[Sequence[ModelPass]], Awaitable[Sequence[PassOutputs]]]
