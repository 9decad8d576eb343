"""The load of the task sparse: its pipeline, once it reproduces the golden weights."""

from collections.abc import AsyncIterator

from fillmask.bundles.bundle import Bundle
from fillmask.tasks.golden import (
    TEXT_DEVIATION,
    Difference,
    GoldenTolerance,
    Wording,
    check_golden,
    explained,
)
from fillmask.tasks.pipeline import Parts
from fillmask.tasks.result import accepted
from fillmask.tasks.sparse.parameters import SparseParameters
from fillmask.tasks.sparse.pipeline import SparsePipeline


async def load_vectors(parts: Parts) -> SparsePipeline:
    """Return the pipeline of a model, or raise BundleError if a golden text has other weights."""
    bundle = parts.bundle
    assert bundle.sparse is not None  # noqa: S101 - a bundle of this task has a head
    # with all dimensions, because others may be the strongest on this machine
    whole = bundle.sparse.model_copy(update={"max_active_dims": None})
    checked, found = (
        SparsePipeline(
            parts.tokenizer,
            parts.batcher,
            head,
            bundle.max_tokens,
            bundle.architecture.vocab_size,
            parts.tracer,
            truncates=bundle.truncates or parts.truncates,
        )
        for head in (whole, bundle.sparse)
    )
    differences = _differences(bundle, checked)
    await check_golden(differences, weight_tolerance(bundle), Wording("texts", "weights"))
    return found


def weight_tolerance(bundle: Bundle) -> GoldenTolerance:
    """Return the bounds for the weights of golden texts.

    Raises:
        BundleError: a verification figure of int8 is missing or not a number.
    """
    if bundle.precision != "int8":
        return GoldenTolerance(*[bundle.golden.weight_tolerance or 0.0] * 2)
    figures = bundle.vector_int8_figures()
    mean, p99 = figures.mean_weight_difference, figures.p99_weight_difference
    return GoldenTolerance.of_int8(mean, p99, TEXT_DEVIATION, len(bundle.golden.vectors))


async def _differences(bundle: Bundle, sparse: SparsePipeline) -> AsyncIterator[Difference]:
    for index, golden in enumerate(bundle.golden.vectors):
        label = f"golden text {index}"
        with explained(f"read {label}"):
            found = await sparse.compute([golden.text], [SparseParameters()])
        [vector] = accepted(found)
        actual = dict(zip(vector.indices.tolist(), vector.values.tolist(), strict=True))
        for expected in golden.weights:
            difference = abs(actual.get(expected.token, 0.0) - expected.weight)
            yield Difference(label, f"weight of token {expected.token}", difference)
