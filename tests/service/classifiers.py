"""Tiny bundles with a classification head, exported from random weights."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import processors

from export.write_bundle import BundleMetadata, SampleTexts, write_bundle
from model.checkpoints.checkpoint import Checkpoint
from model.encoder.classifier import ClassifierConfig
from model.encoder.config import EncoderConfig
from model.encoder.encoder import TiedEncoder
from tests.service.tiny import VOCABULARY, build_tokenizer

_MASK = "[MASK]"
LABELS = ("sport", "politics", "science")
_TEXTS = [
    "paris is the capital of france .",
    "the dog barked at the mailman .",
    "she drank a cup of tea .",
    "rome was a city of italy .",
    "the cat was walking and running !",
    "is water the tea of a dog ?",
]


def write_classifier(
    path: Path,
    *,
    name: str = "topics",
    labels: tuple[str, ...] = LABELS,
    fills: bool = False,
    pairs: bool = True,
    **head: Any,
) -> Path:
    """Write a bundle with the task text-classification and return its path.

    Args:
        path: directory to write.
        name: name of the model.
        labels: labels of the head.
        fills: True if the bundle also has the task fill-mask.
        pairs: True if the model reads pairs.
        head: further fields of the head's configuration.
    """
    torch.manual_seed(3)
    config = EncoderConfig(
        vocab_size=len(VOCABULARY), d_model=32, num_layers=2, num_heads=2, d_ff=64, max_positions=32
    )
    model = TiedEncoder(config, ClassifierConfig(labels=labels, **head))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    tokenizer = build_tokenizer()
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if pairs:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
    checkpoint = Checkpoint(
        model.eval(), tokenizer.to_str().encode(), head_is_new=not fills, mask_token=_MASK
    )
    metadata = BundleMetadata(
        name=name, license="MIT", description="A test.", max_tokens=None, precision="fp32"
    )
    write_bundle(checkpoint, path, metadata, SampleTexts(_TEXTS, _TEXTS))
    return path
