"""Sparse vectors of texts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic_core import to_json

from fillmask.arrays import FloatArray, IntArray, check_finite
from fillmask.tasks.result import Result

VectorFormat = Literal["pairs", "tokens", "arrays"]


class SparseVector(NamedTuple):
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

    @classmethod
    def reducer(cls, most: int) -> Callable[[FloatArray], "SparseVector"]:
        return partial(cls.from_weights, most=most)


@dataclass(frozen=True, slots=True, eq=False)
class SparseEmbedding(Result):
    """The weights above 0 of a vector over the vocabulary.

    Attributes:
        indices: (n,) int64, ascending token ids.
        values: (n,) float32 weights.
    """

    indices: IntArray
    values: FloatArray
    _token_name: Callable[[int], str] = field(repr=False)

    @property
    def tokens(self) -> list[str]:
        """Token of each index, as in the vocabulary, such as "##ing"."""
        return [self._token_name(index) for index in self.indices.tolist()]

    def to_dict(self) -> dict[str, Any]:
        return {
            "indices": self.indices.tolist(),
            "values": shortest_floats(self.values),
            "tokens": self.tokens,
        }


def shortest_floats(values: FloatArray) -> list[float]:
    """Return float32 numbers as floats whose JSON has at most 8 digits.

    The error of eight digits is below one unit in the last place of a float32.
    """
    wide = values.astype(np.float64)
    digits = 7 - np.floor(np.log10(wide, where=wide > 0, out=np.zeros_like(wide)))
    scales = 10.0**digits
    rounded: list[float] = (np.round(wide * scales) / scales).tolist()
    return rounded


def vector_to_json(vector: SparseEmbedding, vector_format: VectorFormat = "pairs") -> list[bytes]:
    """Return the JSON of a vector.

    Args:
        vector_format: "pairs" for a list of index and value, "tokens" for an object with the weight
            of each token, "arrays" for an object with the lists indices and values.
    """
    indices, values = vector.indices.tolist(), shortest_floats(vector.values)
    body: object = [{"index": i, "value": v} for i, v in zip(indices, values, strict=True)]
    if vector_format == "tokens":
        body = dict(zip(vector.tokens, values, strict=True))
    elif vector_format == "arrays":
        body = {"indices": indices, "values": values}
    return [to_json(body)]
