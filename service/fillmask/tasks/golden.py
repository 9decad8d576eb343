"""Golden check, which compares the results in a bundle with the results on this machine."""

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple, Protocol, Self

from fillmask.errors import BundleError, FillMaskError
from fillmask.parameters.texts import InputText, TextPair

# measured standard deviation of a mask's mean difference, divided by the mean over all masks
MASK_DEVIATION = 0.5
# The same for the logits of a text. Measured deviations are 0.3 to 0.7 with seven labels. With one
# label, most deviations are about 1.2, and the largest is 1.5.
TEXT_DEVIATION = 1.2
STANDARD_ERRORS = 4
# multiple of the 99th percentile, because the largest of about a hundred differences exceeds this
# percentile
LARGEST_DISTANCES = 4


@dataclass(frozen=True, slots=True)
class GoldenTolerance:
    """Bounds on differences of log-probabilities in nats, of logits or of weights.

    The bounds of int8 bundles come from the verification figures, because early int8 bundles
    contain a tolerance that is valid on one kind of CPU only. A larger tolerance for
    log-probabilities in the bundle replaces the bound on each difference.

    Attributes:
        mean: bound on the mean difference over all golden fills or logits.
        largest: bound on each difference.
    """

    mean: float
    largest: float

    @classmethod
    def of_int8(cls, mean: float, p99: float, deviation: float, samples: int) -> Self:
        """Return the bounds on differences between two CPUs.

        Args:
            mean: mean difference between int8 and fp32.
            p99: 99th percentile of these differences.
            deviation: standard deviation of one sample's mean difference, divided by the mean.
            samples: number of golden masks or texts.
        """
        allowance = 1 + STANDARD_ERRORS * deviation / math.sqrt(max(samples, 1))
        return cls(mean=math.sqrt(2) * allowance * mean, largest=largest_int8_difference(p99))


def largest_int8_difference(p99: float) -> float:
    """Return the bound on each difference of log-probabilities or of logits.

    Args:
        p99: 99th percentile of the differences between int8 and fp32.
    """
    return LARGEST_DISTANCES * p99


class Difference(NamedTuple):
    """Difference between a golden result and the result on this machine.

    Attributes:
        label: name of the golden text, such as "golden prompt 0, mask 1".
        value: name of the value, such as "logit of label 2".
        refusal: message about a difference that is too large, after the label. The default names
            the value and the difference.
    """

    label: str
    value: str
    size: float
    refusal: str = ""


class Wording(NamedTuple):
    """What messages call the golden texts, their results, and these results' unit and number."""

    texts: str
    results: str
    unit: str = ""
    counted: str = ""


async def check_golden(
    differences: AsyncIterator[Difference], tolerance: GoldenTolerance, wording: Wording
) -> None:
    """Check that the pipeline for requests reproduces the golden results of a task.

    The bound on each difference detects a single wrong result. The bound on the mean difference
    detects kernels with a small error in every result.

    Raises:
        BundleError: the results differ by more than rounding explains. The message names the text
            or the mean difference.
    """
    sizes: list[float] = []
    async for label, value, size, refusal in differences:
        if not size <= tolerance.largest:  # also true for NaN
            raise mismatch(
                f"{label} "
                + (
                    refusal
                    or f"must match the bundle's {value} to {tolerance.largest:.2g}{wording.unit} "
                    f"(got a difference of {size:.2g})"
                )
            )
        sizes.append(max(size, 0.0))
    mean = fmean(sizes)
    if not mean <= tolerance.mean:  # also true for NaN
        raise mismatch(
            f"the golden {wording.texts} must match the bundle's {wording.results} to "
            f"{tolerance.mean:.2g}{wording.unit} on average (got a mean difference of {mean:.2g}, "
            f"{wording.counted or wording.results}: {len(sizes)})"
        )


@contextmanager
def explained(work: str) -> Iterator[None]:
    """Raise a BundleError in place of the error of a text that the model cannot process."""
    try:
        yield
    except FillMaskError as error:
        raise mismatch(f"the model cannot {work} ({error.text.rstrip('.')})") from error


class GoldenText(Protocol):
    """A text or a pair with expected results."""

    @property
    def text(self) -> str: ...

    @property
    def text_pair(self) -> str | None: ...


def golden_input(golden: GoldenText) -> InputText:
    if golden.text_pair is None:
        return golden.text
    return TextPair(golden.text, golden.text_pair)


def mismatch(reason: str) -> BundleError:
    return BundleError(
        f"The bundle does not work on this machine: {reason}; export the bundle again."
    )
