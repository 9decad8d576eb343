"""Medians and ratios over rounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median over rounds of one contender's figure by another's of the same round.

    A round's figures were taken within minutes of each other, so what slows the machine for a
    while is in both.
    """
    pairs = zip(numerators, denominators, strict=True)
    return statistics.median(above / below for above, below in pairs)


def spread(values: Sequence[float]) -> float:
    """(greatest - least) / median: how far the rounds lie apart."""
    return (max(values) - min(values)) / statistics.median(values)
