"""Bundles of a small random encoder with sparse vectors."""

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer

from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling, SparseSettings
from tests.model.samples import VERSES, randomise, small_config, verse_tokenizer

MAX_TOKENS = 24


def verse_vocabulary() -> Tokenizer:
    """Return the tokenizer of the bundles."""
    return verse_tokenizer()


def write_sparse_bundle(
    path: Path,
    *,
    max_active_dims: int | None = None,
    query_weights: Sequence[float] | None = None,
) -> Path:
    """Write a bundle whose only task is sparse vectors, and return its directory."""
    torch.set_num_threads(1)
    tokenizer = verse_vocabulary()
    config = small_config(vocab_size=tokenizer.get_vocab_size(), max_positions=MAX_TOKENS)
    model = TiedEncoder(config).eval()
    randomise(model, seed=1)
    weights = None if query_weights is None else list(query_weights)
    settings = SparseSettings(SparsePooling(), max_active_dims, weights)
    content = tokenizer.to_str().encode()
    checkpoint = Checkpoint(model, content, False, None, "[MASK]", settings)  # noqa: FBT003 - its head is trained
    metadata = BundleMetadata(
        name=path.name, license="", description="", max_tokens=None, precision="fp32"
    )
    write_bundle(checkpoint, path, metadata, SampleTexts(VERSES, VERSES))
    return path
