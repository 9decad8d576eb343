"""The load of the task classify: its pipeline, once it reproduces the golden logits."""

from collections.abc import AsyncIterator

import numpy as np

from fillmask.bundles.bundle import Bundle
from fillmask.tasks.classify.pipeline import ClassificationPipeline
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


async def load_labels(parts: Parts) -> ClassificationPipeline:
    """Return the pipeline of a model, or raise BundleError if a golden text has other logits."""
    bundle = parts.bundle
    assert bundle.classification is not None  # noqa: S101 - a bundle of this task has a head
    found = ClassificationPipeline(
        parts.tokenizer,
        parts.batcher,
        bundle.classification,
        bundle.max_tokens,
        parts.tracer,
        truncates=parts.truncates,
    )
    differences = _differences(bundle, found)
    await check_golden(differences, logit_tolerance(bundle), Wording("texts", "logits"))
    return found


def logit_tolerance(bundle: Bundle) -> GoldenTolerance:
    """Return the bounds for the logits of golden texts.

    Raises:
        BundleError: a verification figure of int8 is missing or not a number.
    """
    if bundle.precision != "int8":
        return GoldenTolerance(*[bundle.golden.logit_tolerance or 0.0] * 2)
    figures = bundle.label_int8_figures()
    mean, p99 = figures.mean_logit_difference, figures.p99_logit_difference
    return GoldenTolerance.of_int8(mean, p99, TEXT_DEVIATION, len(bundle.golden.labels))


async def _differences(
    bundle: Bundle, classification: ClassificationPipeline
) -> AsyncIterator[Difference]:
    for index, golden in enumerate(bundle.golden.labels):
        label = f"golden text {index}"
        with explained(f"classify {label}"):
            [actual] = await classification.logits([golden_input(golden)])
        if len(actual) != len(golden.logits):
            raise mismatch(
                f"{label} must have as many logits as in the bundle, {len(golden.logits)} "
                f"(got {len(actual)})"
            )
        distances = np.abs(np.asarray(actual) - np.array(golden.logits))
        for place in np.argsort(-distances, kind="stable").tolist():  # the worst comes first
            yield Difference(label, f"logit of label {place}", float(distances[place]))
