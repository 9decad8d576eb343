"""Golden check of sparse vectors, which compares weights in a bundle with those on this machine."""

from statistics import fmean

from fillmask.bundles.bundle import Bundle
from fillmask.errors import FillMaskError
from fillmask.parameters.sparse import SparseOptions
from fillmask.registry.verification.golden import GoldenTolerance, mismatch
from fillmask.results.sparse import SparseEmbedding
from fillmask.tasks.sparse import SparsePipeline


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
        try:
            [found] = await sparse.embed([golden.text], [SparseOptions()])
        except FillMaskError as error:
            raise mismatch(f"the model cannot read {label} ({error.text.rstrip('.')})") from error
        assert isinstance(found, SparseEmbedding)  # noqa: S101 - the pipeline raises errors of texts
        actual = dict(zip(found.indices.tolist(), found.values.tolist(), strict=True))
        for expected in golden.weights:
            difference = abs(actual.get(expected.token, 0.0) - expected.weight)
            if not difference <= tolerance.largest:
                raise mismatch(
                    f"{label} must match the bundle's weight of token {expected.token} to "
                    f"{tolerance.largest:.2g} (got a difference of {difference:.2g})"
                )
            differences.append(difference)
    mean = fmean(differences)
    if not mean <= tolerance.mean:
        raise mismatch(
            f"the golden texts must match the bundle's weights to {tolerance.mean:.2g} on average "
            f"(got a mean difference of {mean:.2g}, weights: {len(differences)})"
        )
