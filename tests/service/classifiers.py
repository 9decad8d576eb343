"""Tiny bundles with a classification head, exported from random weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from fillmask.parameters.texts import InputText, TextPair
from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from tests.service.tiny import VOCABULARY, build_pair_tokenizer, build_tokenizer

_MASK = "[MASK]"
LABELS = ("sport", "politics", "science")
# examples of the pictures in docs/playground.md
QUESTION = "Is Rome the capital of Italy?"
ANSWERS: dict[InputText, str] = {
    TextPair(QUESTION, "Rome is the capital."): "answer",
    TextPair(QUESTION, "She drank tea."): "no_answer",
}
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
        fills: True if the bundle also has the task fill-mask.
        pairs: True if the model reads pairs.
        head: further fields of the head's configuration.
    """
    model = random_model(ClassifierConfig(labels=labels, **head))
    write_model(path, model, plain_tokenizer(pairs=pairs), name, fills=fills)
    return path


def write_taught_classifier(path: Path, examples: Mapping[InputText, str]) -> Path:
    """Return the path of a new bundle whose model gives each example its label.

    The encoder is random. A ridge regression on the mean hidden states of the examples gives the
    output layer. The targets of the regression are logits of 4 for the label of an example and 0
    for the other labels.
    """
    labels = tuple(dict.fromkeys(examples.values()))
    model = random_model(ClassifierConfig(labels=labels, activation=None, pooling="mean"))
    tokenizer = plain_tokenizer(pairs=True)
    head = model.classifier
    assert head is not None
    output, head.output = head.output, torch.nn.Identity()  # type: ignore[assignment]
    rows = []
    for text in examples:
        parts = (text.text, text.text_pair) if isinstance(text, TextPair) else (text,)
        encoding = tokenizer.encode(*parts)
        ids, types = torch.tensor([encoding.ids]), torch.tensor([encoding.type_ids])
        rows.append(model.classify(ids, None, types)[0].detach().double())
    features_ED = torch.stack(rows)
    targets_EL = torch.tensor(
        [[4.0 * (one == label) for one in labels] for label in examples.values()]
    )
    mean_D, mean_L = features_ED.mean(0), targets_EL.double().mean(0)
    centred_ED = features_ED - mean_D
    gram_EE = centred_ED @ centred_ED.T + 1e-3 * torch.eye(len(rows), dtype=torch.float64)
    weight_DL = centred_ED.T @ torch.linalg.solve(gram_EE, targets_EL - mean_L)
    output.weight.data = weight_DL.T.float().contiguous()
    output.bias.data = (mean_L - mean_D @ weight_DL).float()
    head.output = output
    write_model(path, model, tokenizer, path.name, fills=False)
    return path


def random_model(head: ClassifierConfig) -> TiedEncoder:
    """Return a small random encoder with a head."""
    torch.manual_seed(3)
    config = EncoderConfig(
        vocab_size=len(VOCABULARY), d_model=32, num_layers=2, num_heads=2, d_ff=64, max_positions=32
    )
    model = TiedEncoder(config, head)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


def plain_tokenizer(*, pairs: bool) -> Tokenizer:
    """Return the tokenizer of the tiny model, which neither truncates nor pads."""
    tokenizer = build_pair_tokenizer() if pairs else build_tokenizer()
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def write_model(
    path: Path, model: TiedEncoder, tokenizer: Tokenizer, name: str, *, fills: bool
) -> None:
    """Write the bundle of a small model."""
    checkpoint = Checkpoint(
        model, tokenizer.to_str().encode(), head_is_new=not fills, mask_token=_MASK
    )
    metadata = BundleMetadata(
        name=name, license="MIT", description="A test.", max_tokens=None, precision="fp32"
    )
    write_bundle(checkpoint, path, metadata, SampleTexts(_TEXTS, _TEXTS))
