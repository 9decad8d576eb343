"""The load of the task fill-mask: its pipeline, once it reproduces the golden prompts."""

import math
from collections.abc import AsyncIterator, Iterator, Sequence

from fillmask.bundles.bundle import Bundle
from fillmask.bundles.golden import GoldenFill
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.fill_mask.pipeline import FillMaskPipeline
from fillmask.tasks.fill_mask.results import Fill
from fillmask.tasks.golden import (
    MASK_DEVIATION,
    Difference,
    GoldenTolerance,
    Wording,
    check_golden,
    explained,
    golden_input,
    mismatch,
)
from fillmask.tasks.pipeline import Parts
from fillmask.tasks.result import accepted

_WORDING = Wording("prompts", "log-probabilities", " nats", "tokens")


async def load_fills(parts: Parts) -> FillMaskPipeline:
    """Return the pipeline of a model, or raise BundleError if a golden prompt has other fills."""
    bundle = parts.bundle
    # without the request limits, because a golden prompt may have more masks than a request
    unlimited = parts._replace(max_masks=bundle.max_tokens, max_passes=1)
    await check_golden_prompts(bundle, FillMaskPipeline.of(unlimited))
    return FillMaskPipeline.of(parts)


async def check_golden_prompts(bundle: Bundle, fill_mask: FillMaskPipeline) -> None:
    """Check that a pipeline reproduces the golden prompts, or raise BundleError."""
    await check_golden(_differences(bundle, fill_mask), fill_tolerance(bundle), _WORDING)


def fill_tolerance(bundle: Bundle) -> GoldenTolerance:
    """Return the bounds for the log-probabilities of golden prompts.

    Raises:
        BundleError: the bundle has verification figures of int8, but a figure is missing or not a
            number.
    """
    named = bundle.golden.log_prob_tolerance or 0.0
    figures = bundle.int8_figures()
    if figures is None:
        return GoldenTolerance(mean=named, largest=named)
    masks = sum(len(prompt.fills) for prompt in bundle.golden.prompts)
    mean, p99 = figures.mean_log_prob_difference, figures.p99_log_prob_difference
    found = GoldenTolerance.of_int8(mean, p99, MASK_DEVIATION, masks)
    return GoldenTolerance(mean=found.mean, largest=max(named, found.largest))


async def _differences(bundle: Bundle, fill_mask: FillMaskPipeline) -> AsyncIterator[Difference]:
    ordinary_tokens = bundle.architecture.vocab_size - len(bundle.special_token_ids)
    for index, prompt in enumerate(bundle.golden.prompts):
        label = f"golden prompt {index}"
        # more fills than in the bundle, because a token may have a lower rank on this machine
        top_k = min(2 * max(map(len, prompt.fills), default=1), ordinary_tokens)
        with explained(f"fill {label}"):
            found = await fill_mask.compute(
                [golden_input(prompt)], [FillMaskParameters(top_k=top_k)]
            )
        [fills] = accepted(found)
        if len(fills.masks) != len(prompt.fills):
            raise mismatch(
                f"{label} must have one list of fills per mask, {len(fills.masks)} in total (got "
                f"{len(prompt.fills)})"
            )
        for mask, (expected, actual) in enumerate(zip(prompt.fills, fills.masks, strict=True)):
            for one in _of_mask(f"{label}, mask {mask}", expected, actual):
                yield one


def _of_mask(
    label: str, expected: Sequence[GoldenFill], actual: Sequence[Fill]
) -> Iterator[Difference]:
    """Yield the difference of each expected fill.

    For a token that is missing from the actual fills, this is the difference from the last of them,
    which is a lower bound.
    """
    log_probs = {fill.token: _log(fill.score) for fill in actual}
    last = min(log_probs.values())
    for fill in expected:
        value = f"log-probability of token {fill.token}"
        if fill.token in log_probs:
            yield Difference(label, value, abs(log_probs[fill.token] - fill.log_prob))
        else:
            here = list(log_probs)[: len(expected)]
            tokens = [fill.token for fill in expected]
            refusal = f"has the tokens {here} instead of {tokens}"
            yield Difference(label, value, fill.log_prob - last, refusal)


def _log(probability: float) -> float:
    return math.log(probability) if probability else -math.inf
