"""Golden check, which compares the results in a bundle with the results on this machine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Self

import numpy as np

from fillmask.bundles.bundle import Bundle
from fillmask.bundles.golden import GoldenFill, GoldenLabels, GoldenPrompt
from fillmask.errors import BundleError, FillMaskError
from fillmask.parameters.fill_mask import FillOptions
from fillmask.parameters.texts import InputText, TextPair
from fillmask.results.fills import Fill
from fillmask.tasks.classification import ClassificationPipeline
from fillmask.tasks.fill_mask.pipeline import FillMaskPipeline

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
    def of(cls, bundle: Bundle) -> Self:
        """Return the bounds for the fills of a bundle with the task fill-mask.

        Raises:
            BundleError: the bundle has verification figures of int8, but a figure is missing or not
                a number.
        """
        named = bundle.golden.log_prob_tolerance or 0.0
        figures = bundle.int8_figures()
        if figures is None:
            return cls(mean=named, largest=named)
        masks = sum(len(prompt.fills) for prompt in bundle.golden.prompts)
        mean = _mean_bound(figures.mean_log_prob_difference, MASK_DEVIATION, masks)
        largest = largest_int8_difference(figures.p99_log_prob_difference)
        return cls(mean=mean, largest=max(named, largest))

    @classmethod
    def of_labels(cls, bundle: Bundle) -> Self:
        """Return the bounds for the logits of a bundle with the task text-classification.

        Raises:
            BundleError: a verification figure of int8 is missing or not a number.
        """
        named = bundle.golden.logit_tolerance or 0.0
        if bundle.precision != "int8":
            return cls(mean=named, largest=named)
        figures = bundle.label_int8_figures()
        texts = len(bundle.golden.labels)
        mean = _mean_bound(figures.mean_logit_difference, TEXT_DEVIATION, texts)
        return cls(mean=mean, largest=largest_int8_difference(figures.p99_logit_difference))

    @classmethod
    def of_vectors(cls, bundle: Bundle) -> Self:
        """Return the bounds for the weights of a bundle with the task sparse.

        Raises:
            BundleError: a verification figure of int8 is missing or not a number.
        """
        named = bundle.golden.weight_tolerance or 0.0
        if bundle.precision != "int8":
            return cls(mean=named, largest=named)
        figures = bundle.vector_int8_figures()
        texts = len(bundle.golden.vectors)
        mean = _mean_bound(figures.mean_weight_difference, TEXT_DEVIATION, texts)
        return cls(mean=mean, largest=largest_int8_difference(figures.p99_weight_difference))


def _mean_bound(mean: float, deviation: float, samples: int) -> float:
    """Return the bound on the mean difference between two CPUs.

    Args:
        mean: mean difference between int8 and fp32.
        deviation: standard deviation of one sample's mean difference, divided by the mean.
        samples: number of golden masks or texts.
    """
    allowance = 1 + STANDARD_ERRORS * deviation / math.sqrt(max(samples, 1))
    return math.sqrt(2) * allowance * mean


def largest_int8_difference(p99: float) -> float:
    """Return the bound on each difference of log-probabilities or of logits.

    Args:
        p99: 99th percentile of the differences between int8 and fp32.
    """
    return LARGEST_DISTANCES * p99


async def check_golden_labels(bundle: Bundle, classification: ClassificationPipeline) -> None:
    """Check that the pipeline for requests reproduces the logits of the golden texts.

    Raises:
        BundleError: a golden text cannot be classified, or its logits differ by more than rounding
            explains. The message names the text or the mean difference.
    """
    tolerance = GoldenTolerance.of_labels(bundle)
    differences: list[float] = []
    for index, golden in enumerate(bundle.golden.labels):
        label = f"golden text {index}"
        try:
            [found] = await classification.logits([_input(golden)])
        except FillMaskError as error:
            raise mismatch(
                f"the model cannot classify {label} ({error.text.rstrip('.')})"
            ) from error
        actual = np.asarray(found)
        if len(actual) != len(golden.logits):
            raise mismatch(
                f"{label} must have as many logits as in the bundle, {len(golden.logits)} "
                f"(got {len(actual)})"
            )
        distances = np.abs(actual - np.array(golden.logits))
        worst = int(distances.argmax())  # NaN counts as the largest number
        if not distances[worst] <= tolerance.largest:
            raise mismatch(
                f"{label} must match the bundle's logit of label {worst} to "
                f"{tolerance.largest:.2g} (got a difference of {distances[worst]:.2g})"
            )
        differences += distances.tolist()
    mean = fmean(differences)
    if not mean <= tolerance.mean:
        raise mismatch(
            f"the golden texts must match the bundle's logits to {tolerance.mean:.2g} on average "
            f"(got a mean difference of {mean:.2g}, logits: {len(differences)})"
        )


async def check_golden_prompts(bundle: Bundle, fill_mask: FillMaskPipeline) -> None:
    """Check that the pipeline for requests reproduces the golden prompts' log-probabilities.

    The bound on each difference detects a single wrong fill. The bound on the mean difference
    detects kernels with a small error in every fill.

    Raises:
        BundleError: a golden prompt cannot be filled, or its log-probabilities differ by more than
            rounding explains. The message names the prompt or the mean difference.
    """
    tolerance = GoldenTolerance.of(bundle)
    ordinary_tokens = bundle.architecture.vocab_size - len(bundle.special_token_ids)
    differences: list[float] = []
    for index, prompt in enumerate(bundle.golden.prompts):
        label = f"golden prompt {index}"
        # more fills than in the bundle, because a token may have a lower rank on this machine
        top_k = min(2 * max(map(len, prompt.fills), default=1), ordinary_tokens)
        try:
            result = await fill_mask.fill([_input(prompt)], FillOptions(top_k=top_k))
        except FillMaskError as error:
            raise mismatch(f"the model cannot fill {label} ({error.text.rstrip('.')})") from error
        [masks] = result.fills
        if len(masks) != len(prompt.fills):
            raise mismatch(
                f"{label} must have one list of fills per mask, {len(masks)} in total (got "
                f"{len(prompt.fills)})"
            )
        for mask, (expected, actual) in enumerate(zip(prompt.fills, masks, strict=True)):
            differences += _differences(
                f"{label}, mask {mask}", expected, actual, tolerance.largest
            )
    mean = fmean(differences)
    if not mean <= tolerance.mean:  # also true for NaN
        raise mismatch(
            f"the golden prompts must match the bundle's log-probabilities to "
            f"{tolerance.mean:.2g} nats on average (got a mean difference of {mean:.2g}, tokens: "
            f"{len(differences)})"
        )


def _differences(
    label: str, expected: tuple[GoldenFill, ...], actual: Sequence[Fill], largest: float
) -> list[float]:
    """Return the log-probability differences between expected and actual fills of a mask, in nats.

    For a token that is missing from the actual fills, the function returns the difference from the
    last actual fill, which is a lower bound.
    """
    log_probs = {fill.token: _log(fill.score) for fill in actual}
    last = min(log_probs.values())
    differences = []
    for fill in expected:
        listed = fill.token in log_probs
        difference = abs(log_probs[fill.token] - fill.log_prob) if listed else fill.log_prob - last
        if not difference <= largest:  # also true for NaN
            if listed:
                raise mismatch(
                    f"{label} must match the bundle's log-probability of token {fill.token} to "
                    f"{largest:.2g} nats (got a difference of {difference:.2g})"
                )
            here = list(log_probs)[: len(expected)]
            tokens = [fill.token for fill in expected]
            raise mismatch(f"{label} has the tokens {here} instead of {tokens}")
        differences.append(max(difference, 0.0))
    return differences


def _input(golden: GoldenPrompt | GoldenLabels) -> InputText:
    if golden.text_pair is None:
        return golden.text
    return TextPair(golden.text, golden.text_pair)


def _log(probability: float) -> float:
    return math.log(probability) if probability else -math.inf


def mismatch(reason: str) -> BundleError:
    """Create the error for results that differ from the golden results."""
    return BundleError(
        f"The bundle does not work on this machine: {reason}; export the bundle again."
    )
