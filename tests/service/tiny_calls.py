"""Calls of the pipeline with the tokenizer, batcher and runtime of the tiny model."""

from collections.abc import Sequence

import pytest

from fillmask.engine.batcher import Batcher
from fillmask.engine.runtime import Runtime
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.fill_mask.pipeline import FillMaskPipeline
from fillmask.tasks.fill_mask.results import Fill
from fillmask.tasks.result import accepted
from fillmask.tokenization.tokenizer import Tokenizer
from tests.service.tiny import (
    MASK_ID,
    MAX_TOKENS,
    SPECIAL,
    VOCABULARY,
    Tiny,
    build_pair_tokenizer,
)


def make_tokenizer(tiny: Tiny) -> Tokenizer:
    content = (tiny.path / "tokenizer.json").read_bytes()
    return Tokenizer(content, "[MASK]", MASK_ID, range(len(SPECIAL)))


def make_pair_tokenizer() -> Tokenizer:
    content = build_pair_tokenizer().to_str().encode()
    return Tokenizer(content, "[MASK]", MASK_ID, range(len(SPECIAL)), pairs=True, token_types=2)


def make_pipeline(tiny: Tiny, batcher: Batcher) -> FillMaskPipeline:
    """Return a pipeline with limits that no test reaches."""
    return FillMaskPipeline(
        make_tokenizer(tiny),
        batcher,
        max_tokens=MAX_TOKENS,
        vocab_size=len(VOCABULARY),
        max_masks=100,
        max_passes=1_000,
    )


async def fill(
    tiny: Tiny,
    texts: Sequence[str],
    top_k: int | None = None,
    targets: Sequence[str] | None = None,
    max_masks: int = 100,
    max_passes: int = 1,
) -> Sequence[Sequence[Sequence[Fill]]]:
    """Fill the masks of texts. Each call uses a separate batcher."""
    runtime = Runtime(tiny.path / "model.onnx")
    batcher = Batcher(runtime.run, 2, 64, 10_000, 10_000, 10, pytest.fail)
    try:
        pipeline = FillMaskPipeline(
            make_tokenizer(tiny),
            batcher,
            max_tokens=MAX_TOKENS,
            vocab_size=len(VOCABULARY),
            max_masks=max_masks,
            max_passes=max_passes,
        )
        own = FillMaskParameters(top_k=top_k, targets=tuple(targets) if targets else None)
        return [one.masks for one in accepted(await pipeline.compute(texts, [own] * len(texts)))]
    finally:
        await batcher.close()
