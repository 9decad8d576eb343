"""Classification head and next-sentence loss, compared with the float64 oracle.

The tolerance is 1e-5 absolute on float32 weights, with logits of order 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from tests.model import oracle
from tests.model.samples import in_float64, random_encoder, random_ids, small_config

TOLERANCE = 1e-5

LABELS = ("news", "sport", "science")
HEADS = {
    "BERT's pooler": ClassifierConfig(labels=LABELS),
    "next sentence": ClassifierConfig.next_sentence(),
    "DistilBERT's ReLU": ClassifierConfig(labels=LABELS, activation="relu"),
    "ELECTRA's GELU": ClassifierConfig(labels=LABELS, activation="gelu_erf"),
    "ModernBERT's mean and norm": ClassifierConfig(
        labels=LABELS, activation="gelu_tanh", dense_bias=False, norm=True, pooling="mean"
    ),
    "linear": ClassifierConfig(labels=LABELS[:1], activation=None),
    "linear, mean": ClassifierConfig(labels=LABELS, activation=None, pooling="mean"),
}
CONFIGS = {
    "bert": small_config(),
    "three token types": small_config(type_vocab_size=3, activation="gelu_tanh"),
    "pre-norm with a final norm": small_config(norm_placement="pre", final_norm=True),
    "no token types": small_config(type_vocab_size=0),
}

# tokens of the two parts of each text
PARTS = ((6, 8), (3, 2), (1, 16), (5, 0))


def pairs(config: EncoderConfig) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, attention mask and token types of pairs of texts, with padding.

    All tensors have the shape (4, 17). The second part of each pair has token type 1.
    """
    position = torch.arange(17)[None]
    first, second = (torch.tensor(part)[:, None] for part in zip(*PARTS, strict=True))
    attention_mask = (position < first + second).long()
    return random_ids((4, 17), config.vocab_size), attention_mask, (position >= first).long()


def expected_logits(model: TiedEncoder, inputs: tuple[Tensor, ...]) -> oracle.Floats:
    """Return the (4, L) logits of the oracle."""
    assert model.classifier is not None
    weights, classifier = in_float64(model.state_dict()), model.classifier.config
    rows = []
    for ids, mask, types in zip(*(tensor.numpy() for tensor in inputs), strict=True):
        real = mask.sum()
        hidden = oracle.encoder_hidden(model.config, weights, ids[:real], types[:real])
        rows.append(oracle.label_logits(model.config, classifier, weights, hidden))
    return np.array(rows)


@pytest.mark.parametrize("classifier", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@torch.inference_mode()
def test_logits_of_pairs_agree_with_the_oracle(
    config: EncoderConfig, classifier: ClassifierConfig
) -> None:
    model, inputs = random_encoder(config, classifier=classifier), pairs(config)
    input_ids, attention_mask, types = inputs
    logits = model.classify(input_ids, attention_mask, types if config.type_vocab_size else None)
    expected = expected_logits(model, inputs)
    assert logits.shape == (len(PARTS), len(classifier.labels))
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(logits.numpy(), expected, rtol=0, atol=TOLERANCE)


def test_an_encoder_without_a_head_does_not_classify() -> None:
    model = random_encoder(small_config())
    with pytest.raises(ValueError, match="must have a classification head"):
        model.classify(torch.zeros(1, 3, dtype=torch.long))


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "no labels": ({"labels": ()}, r"labels must be a list of non-blank texts \(got \(\)\)"),
    "an empty label": ({"labels": ("a", " ")}, "labels must be a list of non-blank texts"),
    "labels that are not text": ({"labels": (1, 2)}, r"non-blank texts \(got \(1, 2\)\)"),
    "a label twice": ({"labels": ("a", "b", "a")}, r"labels must differ .* \(got 'a' twice\)"),
    "a problem type": (
        {"labels": LABELS, "problem_type": "ranking"},
        r"problem_type must be one of single_label_classification, .* \(got 'ranking'\)",
    ),
    "a pooling": ({"labels": LABELS, "pooling": "max"}, r"pooling must be one of first, mean"),
    "a bias of a number": ({"labels": LABELS, "dense_bias": 1}, r"dense_bias must be .* \(got 1\)"),
    "a norm without a dense layer": (
        {"labels": LABELS, "activation": None, "norm": True},
        "norm needs a dense layer",
    ),
    "an unknown field": ({"labels": LABELS, "bias": True}, r"classifier must be .*'bias'"),
    "labels missing": ({"pooling": "mean"}, "classifier must be an object with labels"),
}


@pytest.mark.parametrize(("fields", "message"), INVALID.values(), ids=INVALID)
def test_an_invalid_configuration_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassifierConfig.from_dict(fields)
