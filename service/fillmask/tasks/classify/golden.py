"""The golden check of labels."""

from collections.abc import AsyncIterator

import numpy as np

from fillmask.bundles.bundle import Bundle
from fillmask.tasks.classify.pipeline import ClassificationPipeline
from fillmask.tasks.golden import (
    Difference,
    GoldenTolerance,
    Wording,
    check_golden,
    explained,
    golden_input,
    mismatch,
)


async def check_golden_labels(bundle: Bundle, classification: ClassificationPipeline) -> None:
    """Check that a pipeline reproduces the logits of the golden texts, or raise BundleError."""
    differences = _differences(bundle, classification)
    await check_golden(differences, GoldenTolerance.of_labels(bundle), Wording("texts", "logits"))


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
