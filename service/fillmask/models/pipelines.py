"""The pipelines of a model's tasks, which give the golden results before they are returned."""

from dataclasses import dataclass
from functools import partial

from fillmask.bundles.bundle import Bundle
from fillmask.engine.batcher import Batcher
from fillmask.models.golden import (
    check_golden_labels,
    check_golden_prompts,
    check_golden_vectors,
)
from fillmask.observability.tracing import Tracer
from fillmask.settings import Settings
from fillmask.tasks.classify.pipeline import ClassificationPipeline
from fillmask.tasks.fill_mask.pipeline import FillMaskPipeline
from fillmask.tasks.score.pipeline import ScoringPipeline
from fillmask.tasks.sparse.pipeline import SparsePipeline
from fillmask.tokenization.tokenizer import Tokenizer


@dataclass(slots=True)
class Pipelines:
    """The pipelines of a model, None for tasks that it does not have.

    Attributes:
        fill_mask: fills masks (task fill-mask).
        scoring: scores texts (task fill-mask).
        classification: classifies texts (task text-classification).
        sparse: makes sparse vectors (task sparse).
    """

    fill_mask: FillMaskPipeline | None = None
    scoring: ScoringPipeline | None = None
    classification: ClassificationPipeline | None = None
    sparse: SparsePipeline | None = None


async def verified_pipelines(
    bundle: Bundle,
    tokenizer: Tokenizer,
    batcher: Batcher,
    settings: Settings,
    tracer: Tracer | None,
) -> Pipelines:
    """Create the pipelines of a bundle and compare their results with the golden results.

    Raises:
        BundleError: the results differ by more than rounding explains.
    """
    found = Pipelines()
    if "fill-mask" in bundle.tasks:
        fills = partial(
            FillMaskPipeline,
            tokenizer,
            batcher,
            max_tokens=bundle.max_tokens,
            vocab_size=bundle.architecture.vocab_size,
            tracer=tracer,
        )
        # without the request limits, because a golden prompt may have more masks than a request
        await check_golden_prompts(bundle, fills(max_masks=bundle.max_tokens, max_passes=1))
        found.fill_mask = fills(max_masks=settings.max_masks, max_passes=settings.max_passes)
        found.scoring = ScoringPipeline(
            tokenizer, batcher, bundle.max_tokens, settings.max_passes, tracer
        )
    if (head := bundle.classification) is not None:
        found.classification = ClassificationPipeline(
            tokenizer, batcher, head, bundle.max_tokens, tracer, truncates=settings.auto_truncate
        )
        await check_golden_labels(bundle, found.classification)
    if bundle.sparse is not None:
        vectors = partial(
            SparsePipeline,
            tokenizer,
            batcher,
            max_tokens=bundle.max_tokens,
            vocab_size=bundle.architecture.vocab_size,
            tracer=tracer,
            truncates=bundle.truncates or settings.auto_truncate,
        )
        # with all dimensions, because others may be the strongest on this machine
        whole = bundle.sparse.model_copy(update={"max_active_dims": None})
        await check_golden_vectors(bundle, vectors(sparse=whole))
        found.sparse = vectors(sparse=bundle.sparse)
    return found
