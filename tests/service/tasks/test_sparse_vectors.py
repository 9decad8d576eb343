"""Selection of the dimensions of a sparse vector."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fillmask.arrays import FloatArray
from fillmask.tasks.sparse.results import SparseVector


@given(
    arrays(np.float32, st.integers(1, 40), elements=st.sampled_from([0, 0.25, 0.5, 1, 2])),
    st.integers(1, 45),
)
def test_the_largest_weights_are_selected(weights: FloatArray, most: int) -> None:
    vector = SparseVector.from_weights(weights, most)
    ranked = sorted(np.flatnonzero(weights).tolist(), key=lambda index: (-weights[index], index))
    assert vector.indices.tolist() == sorted(ranked[:most])
    np.testing.assert_array_equal(vector.values, weights[vector.indices])


def test_broken_weights_are_an_error() -> None:
    for broken in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or infinity"):
            SparseVector.from_weights(np.array([1, broken], np.float32), 3)
