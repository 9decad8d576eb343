"""Agreement of every family with transformers on the same weights.

The library transformers is the independent oracle. The tolerance is 1e-4 nats for
log-probabilities. Every weight is random, so that a tensor in the wrong place changes the result.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.checkpoints.mapping.tensors import stored_name
from fillmask_model.checkpoints.registry import FAMILIES
from fillmask_model.checkpoints.tensor_files import TensorFiles
from fillmask_model.encoder.counting import count_parameters
from fillmask_model.encoder.encoder import TABLE
from tests.model.checkpoints.families.samples import SAMPLES, Inputs, reading_tokens
from tests.model.samples import assert_same_weights, change_tensors

TOLERANCE = 1e-4
# families that transformers only reads after a translation, in tests/published
TRANSLATED = {"neobert", "new"}


@pytest.mark.parametrize("name", SAMPLES)
@torch.inference_mode()
def test_log_probs_equal_those_of_transformers(name: str, tmp_path: Path) -> None:
    # The texts have the model's maximum length or contain padding. The parameters are counted from
    # the configuration, and tensors have their names of the checkpoint, for error messages.
    sample = SAMPLES[name]
    theirs = sample.make()
    theirs.save_pretrained(tmp_path)
    loaded = load_checkpoint(tmp_path)
    assert not loaded.head_is_new
    tokens = reading_tokens(theirs)
    assert loaded.model.config.max_positions == tokens
    inputs = Inputs.of(theirs, sample, tokens)
    expected = inputs.log_probs(theirs)
    assert expected.std() > 0.3
    logits = loaded.model(inputs.input_ids, inputs.mask_indicator, inputs.attention_mask)
    torch.testing.assert_close(torch.log_softmax(logits, -1), expected, rtol=0, atol=TOLERANCE)
    count = count_parameters(loaded.model.config)
    parameters = sum(parameter.numel() for parameter in loaded.model.parameters())
    assert parameters == (count.tied if loaded.model.config.tied else count.untied)
    family = FAMILIES[theirs.config.model_type]
    # tensors that a mapping adds are zero
    tensors = loaded.model.state_dict().items()
    names = {stored_name(family, ours) for ours, tensor in tensors if tensor.any()}
    # transformers saves ESM's norms under old names of TensorFlow
    stored = [
        n.replace(".gamma", ".weight").replace(".beta", ".bias") for n in TensorFiles(tmp_path)
    ]
    assert names <= set(stored)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_wrapped_model_with_other_heads_is_read(name: str, tmp_path: Path) -> None:
    # Its tied table is only at the head.
    wrapper = "net.model.module._orig_mod."
    theirs = SAMPLES[name].make()
    theirs.save_pretrained(tmp_path)
    before = load_checkpoint(tmp_path)
    family = FAMILIES[theirs.config.model_type]

    def publish(tensors: dict[str, Tensor]) -> None:
        if before.model.config.tied:
            tensors[f"{family.decoder}.weight"] = tensors.pop(stored_name(family, TABLE))
        tensors |= {"cls.species.bias": torch.zeros(6), "n_averaged": torch.tensor(3)}
        tensors[f"{family.prefix}pooler.dense\n.bias"] = torch.zeros(3)
        for one in list(tensors):
            tensors[wrapper + one] = tensors.pop(one)

    change_tensors(tmp_path, publish)
    after = load_checkpoint(tmp_path)
    assert_same_weights(after.model, before.model)
    wrapped, ignored = after.notes
    assert f" tensors without their wrapper, such as {wrapper}" in wrapped
    for one in ("cls.species.bias", "n_averaged", rf"{family.prefix}pooler.dense\n.bias"):
        assert one in ignored


def test_each_family_has_two_samples(tmp_path: Path) -> None:
    kinds = [sample.make().config.model_type for sample in SAMPLES.values()]
    assert set(kinds) == set(FAMILIES) - TRANSLATED
    assert all(kinds.count(kind) >= 2 for kind in kinds)
