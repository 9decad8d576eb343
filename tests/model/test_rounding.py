"""Training with rounded inputs: what is rounded, how far, and what gradients see of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.encoder import TiedEncoder
from model.rounding import round_inputs
from tests.model.samples import metrics_of, random_encoder, small_config


def inputs_of_linear_maps(model: TiedEncoder) -> dict[str, Tensor]:
    """Run the encoder once; what enters each map's product, by name."""
    found: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        return lambda _, inputs: found.__setitem__(name, inputs[0].detach())

    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(keep(name))
    ids = torch.arange(24).reshape(2, 12)
    model(ids, torch.ones(2, 12))
    return found


def steps_of(name: str, inputs: Tensor) -> NDArray[np.float64]:
    """A map's input rows, in the steps they should be rounded to."""
    rows: NDArray[np.float64] = inputs.reshape(-1, inputs.shape[-1]).double().numpy()
    if name.endswith(".ffn_out"):
        steps = np.maximum(rows.max(axis=1, keepdims=True) / 239, 0.171 / 16)
    else:
        steps = np.abs(rows).max(axis=1, keepdims=True) / 127
    multiples: NDArray[np.float64] = rows / steps
    return multiples


def test_every_map_gets_rows_of_few_values() -> None:
    """Rows are whole multiples of one step, within the numbers int8 and uint8 about 16 have."""
    model = random_encoder(small_config(head_transform=True))
    round_inputs(model)
    found = inputs_of_linear_maps(model)
    assert len(found) == 2 * 6 + 1
    for name, inputs in found.items():
        multiples = steps_of(name, inputs)
        lowest, highest = (-16, 239) if name.endswith(".ffn_out") else (-127, 127)
        np.testing.assert_allclose(multiples, multiples.round(), atol=1e-3, err_msg=name)
        assert multiples.min() > lowest - 0.1, name
        assert multiples.max() < highest + 0.1, name
        assert len(np.unique(multiples.round())) > 20, name


def test_logits_move_a_little() -> None:
    """Rounding changes the logits, and by far less than they differ among each other."""
    model = random_encoder(small_config(head_transform=True))
    ids = torch.arange(24).reshape(2, 12)
    exact = model(ids, torch.ones(2, 12))
    round_inputs(model)
    rounded = model(ids, torch.ones(2, 12))
    error = float((rounded - exact).detach().abs().max())
    assert 0 < error < 0.2 * float(exact.detach().std())


def test_gradients_pass_as_if_nothing_was_rounded() -> None:
    """Every parameter's gradient points where it pointed without rounding."""
    gradients = []
    for rounded in (False, True):
        model = random_encoder(small_config(head_transform=True))
        if rounded:
            round_inputs(model)
        logits = model(torch.arange(24).reshape(2, 12), torch.ones(2, 12))
        loss = torch.nn.functional.cross_entropy(logits, torch.arange(24))
        loss.backward()  # type: ignore[no-untyped-call]  # torch publishes no type for it
        gradients.append([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    for exact, straight in zip(*gradients, strict=True):
        if float(exact.norm()) > 1e-6:  # the keys' bias has none
            assert float(torch.cosine_similarity(exact, straight, dim=0)) > 0.95


def test_a_run_trains_with_it(pretraining: Any, no_curve: None) -> None:
    """The setting reaches the encoder of a run, and the run learns."""
    run = pretraining(steps=60, learning_rate=1e-2, round_inputs=True)
    for name, inputs in inputs_of_linear_maps(run.model).items():
        multiples = steps_of(name, inputs)
        np.testing.assert_allclose(multiples, multiples.round(), atol=1e-3, err_msg=name)
    run.run()
    losses = [line["loss"] for line in metrics_of(run.directory) if "loss" in line]
    assert losses[-1] < 0.7 * losses[0]
