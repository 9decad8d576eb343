"""The load of the task classify-tokens: its pipeline, once it reproduces the golden labels."""

from collections.abc import AsyncIterator

from fillmask.bundles.bundle import Bundle
from fillmask.tasks.classify_tokens.pipeline import TokenPipeline
from fillmask.tasks.golden import (
    TEXT_DEVIATION,
    Difference,
    GoldenTolerance,
    Wording,
    check_golden,
    explained,
    golden_input,
    mismatch,
)
from fillmask.tasks.pipeline import Parts


async def load_tokens(parts: Parts) -> TokenPipeline:
    """Return the pipeline of a model, or raise BundleError if a golden text has other labels."""
    found = TokenPipeline(parts)
    wording = Wording("texts", "log-probabilities", " nats", "tokens")
    await check_golden(_differences(parts.bundle, found), label_tolerance(parts.bundle), wording)
    return found


def label_tolerance(bundle: Bundle) -> GoldenTolerance:
    """Return the bounds for the log-probabilities of the labels of golden texts.

    Raises:
        BundleError: a verification figure of int8 is missing or not a number.
    """
    if bundle.precision != "int8":
        return GoldenTolerance(*[bundle.golden.label_tolerance or 0.0] * 2)
    figures = bundle.token_int8_figures()
    mean, p99 = figures.mean_log_prob_difference, figures.p99_log_prob_difference
    return GoldenTolerance.of_int8(mean, p99, TEXT_DEVIATION, len(bundle.golden.token_labels))


async def _differences(bundle: Bundle, tokens: TokenPipeline) -> AsyncIterator[Difference]:
    for index, golden in enumerate(bundle.golden.token_labels):
        label = f"golden text {index}"
        with explained(f"label {label}"):
            log_probs_TL = await tokens.log_probs(golden_input(golden))
        if len(log_probs_TL) != len(golden.labels):
            raise mismatch(
                f"{label} must have as many tokens as in the bundle, {len(golden.labels)} "
                f"(got {len(log_probs_TL)})"
            )
        pairs = zip(golden.labels, golden.log_probs, strict=True)
        for token, (best, log_prob) in enumerate(pairs):
            difference = abs(float(log_probs_TL[token, best]) - log_prob)
            yield Difference(label, f"log-probability of label {best} at token {token}", difference)
