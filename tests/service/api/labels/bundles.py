"""Bundles of small random encoders with classification heads."""

from collections.abc import Sequence
from pathlib import Path

import torch

from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from tests.model.samples import VERSES, randomise, small_config, verse_tokenizer

LABELS = ("sport", "news", "science")
MAX_TOKENS = 24


def write_label_bundle(
    path: Path, *, fills: bool = True, labels: Sequence[str] = LABELS, scale: float = 1
) -> Path:
    """Write the bundle of a random encoder that classifies texts and pairs.

    Args:
        path: directory of the bundle. Its name is also the name of the model.
        fills: True if the model also fills masks.
        scale: factor of the weights of the head's output layer.
    """
    torch.set_num_threads(1)
    tokenizer = verse_tokenizer()
    config = small_config(vocab_size=tokenizer.get_vocab_size(), max_positions=MAX_TOKENS)
    model = TiedEncoder(config, ClassifierConfig(labels=tuple(labels))).eval()
    randomise(model, seed=1)
    assert model.classifier is not None
    with torch.no_grad():
        model.classifier.output.weight.mul_(scale)
    checkpoint = path.with_name(f"{path.name}-checkpoint")
    save_checkpoint(checkpoint, model, tokenizer.to_str().encode(), fills=fills)
    metadata = BundleMetadata(
        name=path.name,
        license="Apache-2.0",
        description="A random encoder.",
        max_tokens=None,
        precision="fp32",
    )
    write_bundle(load_checkpoint(checkpoint), path, metadata, SampleTexts(VERSES, []))
    return path
