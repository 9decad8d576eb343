"""Extension of a trained encoder by a classification head and token types."""

from __future__ import annotations

import dataclasses

import torch

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder

_TOKEN_TYPES = "embeddings.token_type.weight"  # noqa: S105 - not a password


@torch.no_grad()
def extend_encoder(
    model: TiedEncoder, classifier: ClassifierConfig, token_types: int = 0
) -> TiedEncoder:
    """Return a copy of an encoder with a classification head, new unless the encoder has it.

    The hidden states for token type 0 stay the same. An encoder without token types gets a zero
    vector for type 0. The vector of each new type is the sum of the vector of type 0 and a small
    random vector, as in a newly initialised encoder.

    Args:
        model: encoder on the CPU.
        token_types: minimum number of token types.
    """
    before = model.config.type_vocab_size
    config = dataclasses.replace(model.config, type_vocab_size=max(before, token_types))
    extended = TiedEncoder(config, classifier)
    has_it = model.classifier is not None and model.classifier.config == classifier
    old = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if has_it or not name.startswith("classifier.")
    }
    weights = extended.state_dict()
    if token_types > before:
        table = weights[_TOKEN_TYPES]
        first = old[_TOKEN_TYPES][:1] if before else torch.zeros_like(table[:1])
        table += first
        table[: max(before, 1)] = old.get(_TOKEN_TYPES, first)
        old[_TOKEN_TYPES] = table
    extended.load_state_dict(weights | old)
    return extended.train(model.training)
