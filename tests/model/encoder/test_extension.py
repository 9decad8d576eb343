"""Addition of token types and heads to a trained encoder."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.extension import extend_encoder
from tests.model.samples import assert_same_weights, random_encoder, random_ids, small_config

HEAD = ClassifierConfig.next_sentence()
TABLE = "embeddings.token_type.weight"
CONFIGS: dict[str, dict[str, Any]] = {
    "no types": {"type_vocab_size": 0},
    "one type": {"type_vocab_size": 1},
    "no types, narrow table": {"type_vocab_size": 0, "embedding_size": 8},
    "untied": {"type_vocab_size": 0, "tied": False},
}


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_type_0_keeps_every_bit_and_a_new_type_is_near_it(changes: dict[str, Any]) -> None:
    # The logits of masks stay bit-identical, with and without explicit token types 0. The
    # difference of a type is random with a standard deviation of 0.02, as in a new encoder.
    before, same = (random_encoder(small_config(**changes)) for _ in range(2))
    after = extend_encoder(before, HEAD, 2)
    ids, selected = random_ids((3, 9), 61), random_ids((3, 9), 2, seed=1)
    with torch.inference_mode():
        expected = before(ids, selected)
        for types in (None, torch.zeros_like(ids)):
            assert torch.equal(after(ids, selected, None, types), expected)
        assert not torch.equal(after(ids, selected, None, torch.ones_like(ids)), expected)
        assert after.classify(ids).shape == (3, 2)
    assert after.config.type_vocab_size == 2
    assert not after.training
    table = after.state_dict()[TABLE]
    assert 0.003 < float((table[1] - table[0]).std()) < 0.04
    with torch.no_grad():
        for parameter in after.parameters():
            parameter.zero_()
    assert_same_weights(before, same)  # which the copy does not share


def test_types_and_heads_that_exist_stay() -> None:
    before = random_encoder(small_config(), classifier=HEAD)
    assert_same_weights(extend_encoder(before, HEAD, 2), before)
    assert_same_weights(before, extend_encoder(before, HEAD, 1))


def test_a_new_head_replaces_the_old_one() -> None:
    # All other weights stay the same.
    before = random_encoder(small_config(), classifier=ClassifierConfig(labels=("a", "b", "c")))
    after = extend_encoder(before, HEAD)
    assert after.classifier is not None
    assert after.classifier.config == HEAD
    for name, tensor in before.state_dict().items():
        if not name.startswith("classifier."):
            assert torch.equal(after.state_dict()[name], tensor), name
