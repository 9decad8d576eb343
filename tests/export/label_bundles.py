"""Small checkpoints for fills and labels and their bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from tests.model.samples import VERSES, randomise, small_config, verse_tokenizer

Kind = Literal["fills", "labels", "both"]
TASKS: dict[Kind, list[str]] = {
    "fills": ["fill-mask"],
    "labels": ["text-classification"],
    "both": ["fill-mask", "text-classification"],
}
HEAD = ClassifierConfig(labels=("bad", "good", "other"))
MEAN_HEAD = ClassifierConfig(labels=("stars",), pooling="mean", problem_type="regression")
# short sentences, so that pairs of neighbours also fit the model's input
TEXTS = (*VERSES, "the cat sat", "the old fox ran", "a small bird sang", "the sun went down")


def label_checkpoint(
    kind: Kind, head: ClassifierConfig = HEAD, seed: int = 0, **changes: Any
) -> Checkpoint:
    """Return a random checkpoint for fills, labels or both.

    Args:
        changes: fields of EncoderConfig that replace those of the small configuration.
    """
    tokenizer = verse_tokenizer()
    sizes = {"vocab_size": tokenizer.get_vocab_size(), "num_layers": 3, "max_positions": 40}
    model = TiedEncoder(small_config(**sizes | changes), None if kind == "fills" else head).eval()
    randomise(model, seed)
    head_is_new = kind == "labels"
    content = tokenizer.to_str().encode()
    return Checkpoint(model, content, head_is_new, mask_token="[MASK]")  # noqa: S106 - a token of another kind


def metadata(precision: str = "fp32", max_tokens: int | None = None) -> BundleMetadata:
    return BundleMetadata(
        name="tiny",
        license="CC0-1.0",
        description="A test.",
        max_tokens=max_tokens,
        precision=precision,
    )


def write_label_bundle(
    path: Path, checkpoint: Checkpoint, precision: str = "fp32", max_tokens: int | None = None
) -> dict[str, Any]:
    """Write a bundle of a checkpoint and return its verification figures."""
    texts = SampleTexts(verification=TEXTS, calibration=[text.upper() for text in TEXTS])
    return write_bundle(checkpoint, path, metadata(precision, max_tokens), texts)
