"""The use case over the real tokenizer, batcher and runtime of the tiny model."""

from collections.abc import Sequence

import pytest

from service.engine.batcher import Batcher
from service.engine.runtime import Runtime
from service.tasks.fill_mask import FillMaskPipeline
from service.tasks.options import FillOptions
from service.tasks.results import Fill
from service.tokenization.tokenizer import Tokenizer
from tests.service.tiny import MASK_ID, MAX_TOKENS, SPECIAL, VOCABULARY, Tiny


def make_tokenizer(tiny: Tiny) -> Tokenizer:
    """The tokenizer of the bundle."""
    content = (tiny.path / "tokenizer.json").read_bytes()
    return Tokenizer(content, "[MASK]", MASK_ID, range(len(SPECIAL)))


async def fill(
    tiny: Tiny,
    texts: Sequence[str],
    top_k: int | None = None,
    targets: Sequence[str] | None = None,
    max_masks: int = 100,
    max_passes: int = 1,
) -> Sequence[Sequence[Sequence[Fill]]]:
    """One call of the use case."""

    async def call() -> Sequence[Sequence[Sequence[Fill]]]:
        runtime = Runtime(tiny.path / "model.onnx")
        batcher = Batcher(runtime.run, 2, 64, 10_000, 10_000, 10, pytest.fail)
        try:
            use_case = FillMaskPipeline(
                make_tokenizer(tiny),
                batcher,
                max_tokens=MAX_TOKENS,
                vocab_size=len(VOCABULARY),
                max_masks=max_masks,
                max_passes=max_passes,
            )
            return (
                await use_case.fill(
                    texts, FillOptions(top_k=top_k, targets=tuple(targets) if targets else None)
                )
            ).fills
        finally:
            await batcher.close()

    return await call()
