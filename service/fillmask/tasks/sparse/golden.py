"""The golden check of sparse vectors."""

from collections.abc import AsyncIterator

from fillmask.bundles.bundle import Bundle
from fillmask.tasks.golden import Difference, GoldenTolerance, Wording, check_golden, explained
from fillmask.tasks.result import accepted
from fillmask.tasks.sparse.parameters import SparseParameters
from fillmask.tasks.sparse.pipeline import SparsePipeline


async def check_golden_vectors(bundle: Bundle, sparse: SparsePipeline) -> None:
    """Check that a pipeline reproduces the weights of the golden texts, or raise BundleError."""
    differences = _differences(bundle, sparse)
    await check_golden(differences, GoldenTolerance.of_vectors(bundle), Wording("texts", "weights"))


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
