"""Golden check of the built-in model, with broken kernels, weights and tokenizers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask.engine.batcher import Batcher
from fillmask.engine.runtime import Runtime
from fillmask.errors import BundleError
from fillmask.tasks.fill_mask.golden import check_golden_prompts
from fillmask.tasks.fill_mask.pipeline import FillMaskPipeline
from fillmask.tokenization.tokenizer import Tokenizer
from tests.broken_bundles import (
    copy_bundle,
    edit_description,
    flip_bits,
    put_hashes_right,
    saturate_products,
    shift_vocabulary,
)

EXPONENT = (3, 0x40)  # the last byte of a little-endian float32, and the exponent's highest bit


async def replay_prompts(path: Path) -> None:
    """Check the golden prompts of a bundle, without a warm-up."""
    bundle = read_bundle(path)
    tokenizer = Tokenizer.from_bundle(bundle)
    batcher = Batcher(Runtime(bundle.model_path).run, 1, 192, 4096, 4096, 1e3, pytest.fail)
    fill_mask = FillMaskPipeline(
        tokenizer,
        batcher,
        max_tokens=bundle.max_tokens,
        vocab_size=bundle.architecture.vocab_size,
        max_masks=bundle.max_tokens,
        max_passes=1,
    )
    try:
        await check_golden_prompts(bundle, fill_mask)
    finally:
        await batcher.close()


def flip_a_scale(path: Path) -> None:
    """Flip one bit in a scale of one matrix, which changes 1 of 23,675,112 bytes."""
    flip_bits(path, "blocks.2.ffn_out.scales", *EXPONENT)


def keep_half(bundle: dict[str, Any]) -> None:
    """Keep the first half of the golden prompts."""
    prompts = bundle["golden"]["prompts"]
    del prompts[len(prompts) // 2 :]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (saturate_products, r"to 0\.061 nats on average \(got a mean difference of 0\.08, "),
        (flip_a_scale, "golden prompt 0, mask 0 has the tokens"),
        (shift_vocabulary, r"golden prompt 0, mask 0 must match .* \(got a difference of 2\.9\)"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
async def test_broken_bundle_does_not_start(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    # The hashes are correct, so that only the golden check can fail.
    path = copy_bundle(tmp_path / "bundle")
    damage(path)
    put_hashes_right(path)
    edit_description(path, keep_half)  # products in pairs are slow
    with pytest.raises(BundleError, match=f"does not work on this machine: .*{message}"):
        await replay_prompts(path)
