"""Addition of token types and heads to a trained encoder."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.extension import extend_encoder
from tests.model.samples import assert_same_weights, random_ids, randomise, small_config

HEAD = ClassifierConfig.next_sentence()
TABLE = "embeddings.token_type.weight"
CONFIGS: dict[str, dict[str, Any]] = {
    "no types": {"type_vocab_size": 0},
    "one type": {"type_vocab_size": 1},
    "no types, narrow table": {"type_vocab_size": 0, "embedding_size": 8},
    "untied": {"type_vocab_size": 0, "tied": False},
}


def encoder(classifier: ClassifierConfig | None = None, **changes: Any) -> TiedEncoder:
    """Return an encoder whose parameters are all random, including those of the head."""
    model = TiedEncoder(small_config(**changes), classifier).eval()
    randomise(model, seed=3)
    return model


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_type_0_keeps_every_bit(changes: dict[str, Any]) -> None:
    # The logits of masks stay bit-identical, with and without explicit token types 0.
    before = encoder(**changes)
    after = extend_encoder(before, 2, HEAD)
    ids, selected = random_ids((3, 9), 61), random_ids((3, 9), 2, seed=1)
    with torch.inference_mode():
        expected = before(ids, selected)
        for types in (None, torch.zeros_like(ids)):
            assert torch.equal(after(ids, selected, None, types), expected)
        assert not torch.equal(after(ids, selected, None, torch.ones_like(ids)), expected)
        assert after.classify(ids).shape == (3, 2)
    assert after.config.type_vocab_size == 2
    assert not after.training


@pytest.mark.parametrize("types", [0, 1])
def test_a_new_type_is_near_type_0(types: int) -> None:
    # The difference is random with a standard deviation of 0.02, as in a new encoder.
    before = encoder(type_vocab_size=types)
    table = extend_encoder(before, 2, None).state_dict()[TABLE]
    first = before.state_dict()[TABLE][0] if types else torch.zeros(24)
    assert torch.equal(table[0], first)
    assert 0.01 < float((table[1] - first).std()) < 0.03


def test_types_and_heads_that_exist_stay() -> None:
    before = encoder(HEAD)
    assert_same_weights(extend_encoder(before, 2, None), before)
    assert_same_weights(before, extend_encoder(before, 1, None))


def test_a_new_head_replaces_the_old_one() -> None:
    # All other weights stay the same.
    before = encoder(ClassifierConfig(labels=("a", "b", "c")))
    after = extend_encoder(before, 2, HEAD)
    assert after.classifier is not None
    assert after.classifier.config == HEAD
    for name, tensor in before.state_dict().items():
        if not name.startswith("classifier."):
            assert torch.equal(after.state_dict()[name], tensor), name


def test_the_encoder_before_does_not_change() -> None:
    before, same = encoder(type_vocab_size=1), encoder(type_vocab_size=1)
    with torch.no_grad():
        for parameter in extend_encoder(before, 2, HEAD).parameters():
            parameter.zero_()
    assert_same_weights(before, same)
