"""Statistics over rounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Return the median over all rounds of the ratio between two contenders' figures.

    A temporarily slow machine affects both figures of a round, so their ratio hardly changes.
    """
    pairs = zip(numerators, denominators, strict=True)
    return statistics.median(above / below for above, below in pairs)


def spread(values: Sequence[float]) -> float:
    """Return the range of the values divided by their median."""
    return (max(values) - min(values)) / statistics.median(values)
