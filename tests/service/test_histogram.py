"""Values by bucket."""

import math
import random

import pytest

from service.histogram import Histogram


def test_values_are_counted_by_bucket() -> None:
    """A bound belongs to its own bucket; what is above all of them is in the last."""
    histogram = Histogram((1, 2, 5))
    for value in (0.5, 1, 1.5, 2, 5, 5.1, 100):
        histogram.note(value)
    assert histogram.cumulative == [(1, 2), (2, 4), (5, 5), (math.inf, 7)]
    assert histogram.total == pytest.approx(115.1)


def test_no_value_yet() -> None:
    """All buckets are there from the start."""
    histogram = Histogram((1, 2))
    assert histogram.cumulative == [(1, 0), (2, 0), (math.inf, 0)]
    assert histogram.total == 0


def test_every_bucket_is_what_is_not_above_its_bound() -> None:
    """Against counting, over random values."""
    values = [random.expovariate(1) for _ in range(1000)]
    histogram = Histogram((0.1, 0.5, 1, 3))
    for value in values:
        histogram.note(value)
    for bound, count in histogram.cumulative:
        assert count == sum(value <= bound for value in values)
