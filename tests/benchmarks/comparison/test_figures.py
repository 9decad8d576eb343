"""Ratios and spreads over the rounds of a measurement."""

from __future__ import annotations

import pytest

from benchmarks.comparison.page.figures import median_ratio, spread


def test_ratio_is_taken_within_each_round() -> None:
    # The ratios of the rounds are 2, 2 and 3. The second round is slow for both contenders.
    assert median_ratio([100, 10, 300], [50, 5, 100]) == 2
    with pytest.raises(ValueError, match="shorter"):
        median_ratio([1, 2], [1])


def test_spread_is_relative_to_the_median() -> None:
    assert spread([90, 100, 120]) == pytest.approx(0.3)
    assert spread([5, 5]) == 0
