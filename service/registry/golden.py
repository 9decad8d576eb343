"""Golden prompts, compared with the answers of this machine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Self

from service.bundles.bundle import Bundle, GoldenFill
from service.errors import BundleError, FillMaskError
from service.tasks.fill_mask import FillMaskPipeline
from service.tasks.options import FillOptions
from service.tasks.results import Fill

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
        figures = bundle.int8_figures()
        if figures is None:
            return cls(mean=named, largest=named)
        masks = sum(len(prompt.fills) for prompt in bundle.golden.prompts)
        allowance = 1 + STANDARD_ERRORS * MASK_DEVIATION / math.sqrt(max(masks, 1))
        mean = math.sqrt(2) * allowance * figures.mean_log_prob_difference
        largest = largest_int8_difference(figures.p99_log_prob_difference)
        return cls(mean=mean, largest=max(named, largest))


def largest_int8_difference(p99: float) -> float:
    """The bound on one difference, by the 99th percentile of those between int8 and fp32."""
    return LARGEST_DISTANCES * p99


async def check_golden_prompts(bundle: Bundle, fill_mask: FillMaskPipeline) -> None:
    """Fill every golden prompt by the way requests take, and compare log-probabilities.

    One broken answer shows in the largest difference. Kernels that are a little wrong everywhere
    show in the mean over all prompts.

    Raises:
        BundleError: the answers differ by more than rounding explains; names the prompt, or the
            mean over all of them.
    """
    tolerance = GoldenTolerance.of(bundle)
    ordinary_tokens = bundle.architecture.vocab_size - len(bundle.special_token_ids)
    differences: list[float] = []
    for index, prompt in enumerate(bundle.golden.prompts):
        where = f"golden prompt {index}"
        # more than are compared, so that tokens that change places are found
        top_k = min(2 * max(map(len, prompt.fills), default=1), ordinary_tokens)
        try:
            answer = await fill_mask.fill([prompt.text], FillOptions(top_k=top_k))
        except FillMaskError as error:
            raise _differs(f"{where} is not answered: {error.text.rstrip('.')}") from error
        [masks] = answer.fills
        if len(masks) != len(prompt.fills):
            raise _differs(f"{where} has {len(masks)} masks and answers for {len(prompt.fills)}")
        for mask, (expected, actual) in enumerate(zip(prompt.fills, masks, strict=True)):
            differences += _differences(
                f"{where}, mask {mask}", expected, actual, tolerance.largest
            )
    mean = fmean(differences)
    if not mean <= tolerance.mean:  # so that NaN is refused as well
        raise _differs(
            f"its golden prompts differ by {mean:.2g} on average in the log-probabilities of "
            f"{len(differences)} tokens, and rounding explains {tolerance.mean:.2g}"
        )


def _differences(
    where: str, expected: tuple[GoldenFill, ...], actual: Sequence[Fill], largest: float
) -> list[float]:
    """The differences of a mask's fills, in nats.

    A token that is not among the fills here differs by at least its distance from the last one.
    """
    log_probs = {fill.token: _log(fill.score) for fill in actual}
    last = min(log_probs.values())
    differences = []
    for fill in expected:
        listed = fill.token in log_probs
        difference = abs(log_probs[fill.token] - fill.log_prob) if listed else fill.log_prob - last
        if not difference <= largest:  # so that NaN is refused as well
            if listed:
                raise _differs(
                    f"{where} differs by {difference:.2g} in the log-probability of token "
                    f"{fill.token}, and the tolerance is {largest:.2g}"
                )
            here = list(log_probs)[: len(expected)]
            tokens = [fill.token for fill in expected]
            raise _differs(f"{where} has the tokens {here} here and {tokens} in the bundle")
        differences.append(max(difference, 0.0))
    return differences


def _log(probability: float) -> float:
    return math.log(probability) if probability else -math.inf


def _differs(reason: str) -> BundleError:
    return BundleError(f"The bundle does not work on this machine: {reason}.")
