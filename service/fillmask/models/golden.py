"""Golden check, which compares the results in a bundle with the results on this machine."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Self

import numpy as np

from fillmask.bundles.bundle import Bundle
from fillmask.bundles.golden import GoldenFill, GoldenLabels, GoldenPrompt
from fillmask.errors import BundleError, FillMaskError
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tasks.classify.pipeline import ClassificationPipeline
from fillmask.tasks.fill_mask.parameters import FillOptions
from fillmask.tasks.fill_mask.pipeline import FillMaskPipeline
from fillmask.tasks.fill_mask.results import Fill
from fillmask.tasks.sparse.parameters import SparseOptions
from fillmask.tasks.sparse.pipeline import SparsePipeline
from fillmask.tasks.sparse.results import SparseEmbedding

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
        mean, p99 = figures.mean_log_prob_difference, figures.p99_log_prob_difference
        found = cls._of_int8(mean, p99, MASK_DEVIATION, masks)
        return cls(mean=found.mean, largest=max(named, found.largest))

    @classmethod
    def of_labels(cls, bundle: Bundle) -> Self:
        """Return the bounds for the logits of a bundle with the task text-classification.

        Raises:
            BundleError: a verification figure of int8 is missing or not a number.
        """
        if bundle.precision != "int8":
            return cls(*[bundle.golden.logit_tolerance or 0.0] * 2)
        figures = bundle.label_int8_figures()
        mean, p99 = figures.mean_logit_difference, figures.p99_logit_difference
        return cls._of_int8(mean, p99, TEXT_DEVIATION, len(bundle.golden.labels))

    @classmethod
    def of_vectors(cls, bundle: Bundle) -> Self:
        """Return the bounds for the weights of a bundle with the task sparse.

        Raises:
            BundleError: a verification figure of int8 is missing or not a number.
        """
        if bundle.precision != "int8":
            return cls(*[bundle.golden.weight_tolerance or 0.0] * 2)
        figures = bundle.vector_int8_figures()
        mean, p99 = figures.mean_weight_difference, figures.p99_weight_difference
        return cls._of_int8(mean, p99, TEXT_DEVIATION, len(bundle.golden.vectors))

    @classmethod
    def _of_int8(cls, mean: float, p99: float, deviation: float, samples: int) -> Self:
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
        with _explained(f"classify {label}"):
            [actual] = await classification.logits([_input(golden)])
        if len(actual) != len(golden.logits):
            raise _mismatch(
                f"{label} must have as many logits as in the bundle, {len(golden.logits)} "
                f"(got {len(actual)})"
            )
        distances = np.abs(np.asarray(actual) - np.array(golden.logits))
        worst = int(distances.argmax())  # NaN counts as the largest number
        _check_one(label, f"logit of label {worst}", distances[worst], tolerance)
        differences += distances.tolist()
    _check_mean("texts", "logits", differences, tolerance)


async def check_golden_vectors(bundle: Bundle, sparse: SparsePipeline) -> None:
    """Check that the pipeline for requests reproduces the weights of the golden texts.

    Raises:
        BundleError: a golden text has no vector, or its weights differ by more than rounding
            explains. The message names the text or the mean difference.
    """
    tolerance = GoldenTolerance.of_vectors(bundle)
    differences: list[float] = []
    for index, golden in enumerate(bundle.golden.vectors):
        label = f"golden text {index}"
        with _explained(f"read {label}"):
            [found] = await sparse.embed([golden.text], [SparseOptions()])
        assert isinstance(found, SparseEmbedding)  # noqa: S101 - the pipeline raises errors of texts
        actual = dict(zip(found.indices.tolist(), found.values.tolist(), strict=True))
        for expected in golden.weights:
            difference = abs(actual.get(expected.token, 0.0) - expected.weight)
            _check_one(label, f"weight of token {expected.token}", difference, tolerance)
            differences.append(difference)
    _check_mean("texts", "weights", differences, tolerance)


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
        with _explained(f"fill {label}"):
            result = await fill_mask.fill([_input(prompt)], FillOptions(top_k=top_k))
        [masks] = result.fills
        if len(masks) != len(prompt.fills):
            raise _mismatch(
                f"{label} must have one list of fills per mask, {len(masks)} in total (got "
                f"{len(prompt.fills)})"
            )
        for mask, (expected, actual) in enumerate(zip(prompt.fills, masks, strict=True)):
            differences += _differences(f"{label}, mask {mask}", expected, actual, tolerance)
    _check_mean("prompts", "log-probabilities", differences, tolerance, " nats", "tokens")


def _differences(
    label: str,
    expected: tuple[GoldenFill, ...],
    actual: Sequence[Fill],
    tolerance: GoldenTolerance,
) -> list[float]:
    """Return the log-probability differences between expected and actual fills of a mask, in nats.

    For a token that is missing from the actual fills, the function returns the difference from the
    last actual fill, which is a lower bound.
    """
    log_probs = {fill.token: _log(fill.score) for fill in actual}
    last = min(log_probs.values())
    differences = []
    for fill in expected:
        if fill.token in log_probs:
            difference = abs(log_probs[fill.token] - fill.log_prob)
            which = f"log-probability of token {fill.token}"
            _check_one(label, which, difference, tolerance, " nats")
        else:
            difference = fill.log_prob - last
            if not difference <= tolerance.largest:  # also true for NaN
                here = list(log_probs)[: len(expected)]
                tokens = [fill.token for fill in expected]
                raise _mismatch(f"{label} has the tokens {here} instead of {tokens}")
        differences.append(max(difference, 0.0))
    return differences


def _check_one(
    label: str, which: str, difference: float, tolerance: GoldenTolerance, unit: str = ""
) -> None:
    if not difference <= tolerance.largest:  # also true for NaN
        raise _mismatch(
            f"{label} must match the bundle's {which} to {tolerance.largest:.2g}{unit} (got a "
            f"difference of {difference:.2g})"
        )


def _check_mean(
    texts: str,
    results: str,
    differences: Sequence[float],
    tolerance: GoldenTolerance,
    unit: str = "",
    counted: str | None = None,
) -> None:
    mean = fmean(differences)
    if not mean <= tolerance.mean:  # also true for NaN
        raise _mismatch(
            f"the golden {texts} must match the bundle's {results} to {tolerance.mean:.2g}{unit} "
            f"on average (got a mean difference of {mean:.2g}, {counted or results}: "
            f"{len(differences)})"
        )


@contextmanager
def _explained(task: str) -> Iterator[None]:
    try:
        yield
    except FillMaskError as error:
        raise _mismatch(f"the model cannot {task} ({error.text.rstrip('.')})") from error


def _input(golden: GoldenPrompt | GoldenLabels) -> InputText:
    if golden.text_pair is None:
        return golden.text
    return TextPair(golden.text, golden.text_pair)


def _log(probability: float) -> float:
    return math.log(probability) if probability else -math.inf


def _mismatch(reason: str) -> BundleError:
    return BundleError(
        f"The bundle does not work on this machine: {reason}; export the bundle again."
    )
