"""Weights of a batch and their gradients, compared with all logits in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.fine_tuning.tokens import TokenizedTexts, make_batch
from fillmask_model.sparse.pooling import embed
from tests.model.samples import random_encoder, small_config

LENGTHS = (5, 3, 8)


@pytest.mark.parametrize("changes", [{}, {"tied": False}, {"head_bias": False}])
def test_weights_and_gradients_are_those_of_all_logits(changes: dict[str, bool]) -> None:
    model = random_encoder(small_config(**changes)).double()
    generator = np.random.default_rng(0)
    ids = [generator.integers(0, 61, length).astype(np.int32) for length in LENGTHS]
    texts = TokenizedTexts(ids, None, pad=0, max_tokens=16)
    weights_NV = embed(model, SparsePooling(), make_batch(texts, np.arange(len(ids))))
    factors_NV = torch.from_numpy(generator.normal(size=weights_NV.shape))
    torch.autograd.backward((weights_NV * factors_NV).sum())
    found = {
        name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None
    }

    model.zero_grad()
    expected = []
    for one in ids:  # each text alone, without padding
        hidden_TE = model.hidden(torch.from_numpy(one.astype(np.int64))[None])[0]
        expected.append(SparsePooling()(model.logits(hidden_TE)))
    expected_NV = torch.stack(expected)
    torch.testing.assert_close(weights_NV, expected_NV.to(weights_NV), rtol=1e-6, atol=1e-6)
    torch.autograd.backward((expected_NV * factors_NV).sum())
    wanted = {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-5, atol=1e-6, msg=name)
