"""Training for int8: what is rounded, how far, and what gradients see of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.calibration import VOCABULARY
from model.checkpoint import load_checkpoint
from model.rounding import TABLE, RoundedEncoder, round_rows, round_weight
from tests.model.samples import metrics_of, plan_of, random_encoder, small_config

IDS = torch.arange(24).reshape(2, 12)
ALL = torch.ones(2, 12)


def rounded_encoder(**changes: Any) -> RoundedEncoder:
    """An encoder that rounds by a plan of its own."""
    model = random_encoder(small_config(head_transform=True, **changes))
    return RoundedEncoder(model, plan_of(model))


def expected_step(y: Tensor, *, unsigned: bool) -> Tensor:
    """The step of each row (..., 1), by the words of the class."""
    if unsigned:
        return (y.max(dim=-1, keepdim=True).values / 239).clamp(min=0.171 / 16)
    return y.abs().max(dim=-1, keepdim=True).values / 127


@pytest.mark.parametrize("unsigned", [False, True])
def test_rows_are_rounded_to_their_steps(unsigned: bool) -> None:  # noqa: FBT001 - a parameter
    """Whole multiples of a step within int8's or uint8's numbers; float32 channels untouched."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 40, generator=generator) * 3
    if unsigned:
        x = nn.functional.gelu(x)
    factors = torch.rand(40, generator=generator) + 0.5
    if unsigned:
        factors = torch.ones(40)
    factors[[2, 30]] = 0
    x[:, 30] = 1000  # it must not widen the rows
    rounded = round_rows(x, factors, unsigned=unsigned)
    assert torch.equal(rounded[:, [2, 30]], x[:, [2, 30]])
    multiples = (rounded * factors / expected_step(x * factors, unsigned=unsigned)).numpy()
    np.testing.assert_allclose(multiples, multiples.round(), atol=2e-3)
    lowest, highest = (-16, 239) if unsigned else (-127, 127)
    assert multiples.min() > lowest - 0.1
    assert multiples.max() < highest + 0.1
    assert len(np.unique(multiples.round())) > 20


@pytest.mark.parametrize("unsigned", [False, True])
def test_gradients_see_the_value_that_decides_the_step(unsigned: bool) -> None:  # noqa: FBT001
    """They are those of `x + steps(x) * n`, where n is what rounding added, as a constant."""
    generator = torch.Generator().manual_seed(1)
    factors = torch.rand(9, generator=generator) + 0.5
    factors[4] = 0
    x = torch.randn(6, 9, generator=generator).requires_grad_()
    towards = torch.randn(6, 9, generator=generator)
    rounded = round_rows(x, factors, unsigned=unsigned)
    (found,) = torch.autograd.grad((rounded * towards).sum(), x)

    inverse = torch.where(factors > 0, 1 / factors, 0)
    y = x * factors
    step = expected_step(y, unsigned=unsigned)
    added = ((y / step).round() - y / step).detach() * inverse
    (expected,) = torch.autograd.grad(((x + step * added) * towards).sum(), x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert float((found - towards).abs().max()) > 1e-4


def test_a_row_of_zeros_stays_zero() -> None:
    """Nothing is divided by zero, forwards or backwards."""
    x = torch.zeros(2, 5, requires_grad=True)
    for unsigned in (False, True):
        rounded = round_rows(x, torch.ones(5), unsigned=unsigned)
        (gradient,) = torch.autograd.grad(rounded.sum(), x)
        assert torch.equal(rounded, torch.zeros(2, 5))
        assert bool(gradient.isfinite().all())


def test_weights_lie_on_a_grid_of_their_own_row() -> None:
    """At most 255 values of a row over its factors; what is on the grid stays there."""
    generator = torch.Generator().manual_seed(2)
    weight = torch.randn(7, 500, generator=generator)
    factors = torch.rand(500, generator=generator) + 0.5
    factors[:3] = 0
    rounded = round_weight(weight, factors)
    equalized = rounded[:, 3:] / factors[3:]
    multiples = equalized / (equalized.abs().amax(dim=1, keepdim=True) / 127)
    torch.testing.assert_close(multiples, multiples.round(), rtol=0, atol=1e-3)
    torch.testing.assert_close(rounded, weight, rtol=0, atol=0.04)
    torch.testing.assert_close(round_weight(rounded, factors), rounded, rtol=1e-6, atol=1e-8)
    assert torch.equal(rounded[:, :3], weight[:, :3])
    assert bool((round_weight(torch.zeros(2, 500), factors) == 0).all())


def test_logits_move_a_little() -> None:
    """Rounding changes the logits, weights' by themselves too, and by far less than they differ."""
    rounded = rounded_encoder()
    plain = rounded.model(IDS, ALL).detach()
    with_weights, with_both = (logits.detach() for logits in rounded.logits(IDS, ALL))
    for a, b in ((plain, with_weights), (with_weights, with_both)):
        assert 0 < float((a - b).abs().max()) < 0.2 * float(plain.std())
    assert torch.equal(rounded.model(IDS, ALL), plain)


def test_the_settled_encoder_computes_what_training_computed() -> None:
    """The exact half of `logits` is the encoder with the rounded tensors, table included."""
    rounded = rounded_encoder()
    exact, _ = rounded.logits(IDS, ALL)
    other = rounded.settled()
    torch.testing.assert_close(other(IDS, ALL), exact)
    assert not torch.equal(other.embeddings.word.weight, rounded.model.embeddings.word.weight)


@pytest.mark.parametrize("attention_bias", [False, True])
def test_every_maps_input_is_rounded(attention_bias: bool) -> None:  # noqa: FBT001 - a parameter
    """Each map sees few values a row while inputs are rounded: its own grid, the bias apart."""
    rounded = rounded_encoder(attention_bias=attention_bias)
    seen: dict[str, Tensor] = {}
    for name, module in rounded.model.named_modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(
                lambda _, inputs, name=name: seen.__setitem__(name, inputs[0].detach())
            )
    rounded.logits(IDS, ALL)
    assert set(seen) == set(rounded.plan.factors) - {VOCABULARY}
    for name, x in seen.items():
        if name.endswith(".output") and attention_bias:
            value = rounded.model.get_parameter(f"{name.removesuffix('output')}value.bias")
            x = x - value.detach()  # noqa: PLW2901 - the same input, as the graph sees it
        factors = rounded.plan.factors[name]
        y = (x * factors).reshape(-1, len(factors))
        multiples = (y / expected_step(y, unsigned=name.endswith(".ffn_out"))).numpy()
        np.testing.assert_allclose(multiples, multiples.round(), atol=0.02, err_msg=name)


def test_gradients_reach_the_weights_behind_the_rounded_ones() -> None:
    """Every parameter's gradient points where it pointed without rounding."""
    rounded = rounded_encoder()
    gradients = []
    for logits in (rounded.model(IDS, ALL), *rounded.logits(IDS, ALL)):
        rounded.model.zero_grad()
        loss = torch.nn.functional.cross_entropy(logits, torch.arange(24))
        loss.backward()  # type: ignore[no-untyped-call]  # torch publishes no type for it
        gradients.append(
            {n: p.grad.flatten() for n, p in rounded.model.named_parameters() if p.grad is not None}
        )
    plain, *others = gradients
    for other in others:
        assert set(other) == set(plain)
        for name, exact in plain.items():
            if float(exact.norm()) > 1e-6:  # the keys' bias has none
                assert float(torch.cosine_similarity(exact, other[name], dim=0)) > 0.95, name


def test_a_run_ends_on_the_grid(pretraining: Any, no_curve: None) -> None:
    """It learns, the divergence is logged, and the checkpoint says how its weights were rounded."""
    run = pretraining(steps=60, learning_rate=1e-2, rounding_weight=1.0)
    run.run()
    lines = [line for line in metrics_of(run.directory) if "loss" in line]
    assert lines[-1]["loss"] < 0.7 * lines[0]["loss"]
    assert all(line["rounding_divergence"] > 0 for line in lines)
    saved = load_checkpoint(run.directory)
    assert saved.rounding is not None
    table, factors = saved.model.embeddings.word.weight, saved.rounding.factors[VOCABULARY]
    torch.testing.assert_close(round_weight(table, factors), table, rtol=1e-6, atol=1e-8)
    assert not torch.equal(table, run.model.get_parameter(TABLE))


def test_the_divergence_shrinks_what_rounding_does(pretraining: Any, no_curve: None) -> None:
    """With a large weight it ends lower than with next to none."""
    ends = {}
    for weight in (1e-6, 1e5):
        run = pretraining(
            steps=80, learning_rate=1e-2, rounding_weight=weight, name=f"weight {weight}"
        )
        run.run()
        lines = [line for line in metrics_of(run.directory) if "loss" in line]
        ends[weight] = np.mean([line["rounding_divergence"] for line in lines[-3:]])
    assert ends[1e5] < 0.5 * ends[1e-6]


def test_a_run_without_it_says_nothing_of_rounding(pretraining: Any, no_curve: None) -> None:
    """No factors in the checkpoint, and no divergence but zero."""
    run = pretraining(steps=10)
    run.run()
    assert load_checkpoint(run.directory).rounding is None
    assert {line.get("rounding_divergence", 0) for line in metrics_of(run.directory)} == {0}


def test_a_resumed_run_rounds_by_the_plan_it_began_with(
    pretraining: Any, no_curve: None, tmp_path: Path
) -> None:
    """Stopped half-way and resumed, it ends with the very weights of an uninterrupted one."""
    settings = {"steps": 20, "rounding_weight": 1.0, "checkpoint_every_steps": 10}
    whole = pretraining(name="whole", **settings)
    whole.run()
    pretraining(name="parts", **settings).run(until_step=10)
    resumed = pretraining(name="parts", weights_seed=5, **settings)
    resumed.resume()
    resumed.run()
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name]), name
    assert load_checkpoint(tmp_path / "whole").rounding is not None
