"""Differences that rounding explains between golden prompts' answers on two CPUs.

In fp32 two CPUs add in another order, and log-probabilities differ in their last digits. In int8
such a digit tips an activation over a rounding step now and then, and the layers that follow
amplify it: the answers of two CPUs are two roundings of one model. Each is as far from fp32 as the
export measured. Two that have nothing in common are sqrt(2) times as far from one another.
"""

import math
from dataclasses import dataclass
from typing import Self

from service.bundles.bundle import Bundle
from service.bundles.fields import BundleFields

# a mask's own mean differs from that of all masks by half of it (standard deviation, measured)
MASK_DEVIATION = 0.5
STANDARD_ERRORS = 4
# the largest of some hundred differences is beyond their 99th percentile
LARGEST_DISTANCES = 4


@dataclass(frozen=True, slots=True)
class GoldenTolerance:
    """Bounds on differences of log-probabilities, in nats.

    Attributes:
        mean: of all golden fills together.
        largest: of each.
    """

    mean: float
    largest: float

    @classmethod
    def of(cls, bundle: Bundle) -> Self:
        """The bounds for a bundle.

        Bundles in int8 that an earlier export wrote name a tolerance that only CPUs of one kind
        keep; their verification figures replace it.

        Raises:
            BundleError: the verification figures of int8 are not numbers.
        """
        named = bundle.golden.log_prob_tolerance
        if bundle.precision != "int8" or "int8" not in bundle.verification:
            return cls(mean=named, largest=named)
        figures = BundleFields(bundle.verification, "verification").object("int8")
        masks = sum(len(prompt.fills) for prompt in bundle.golden.prompts)
        allowance = 1 + STANDARD_ERRORS * MASK_DEVIATION / math.sqrt(max(masks, 1))
        mean = math.sqrt(2) * allowance * figures.number("mean_log_prob_difference")
        largest = largest_int8_difference(figures.number("p99_log_prob_difference"))
        return cls(mean=mean, largest=max(named, largest))


def largest_int8_difference(p99: float) -> float:
    """The bound on one difference, by the 99th percentile of those between int8 and fp32."""
    return LARGEST_DISTANCES * p99
