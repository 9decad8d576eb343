"""Training for int8: weights on a grid and their gradients."""

from __future__ import annotations

from typing import Any

import torch

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.encoder.encoder import TABLE
from fillmask_model.quantization.layer_precision import VOCABULARY
from fillmask_model.quantization.rounding import RoundedEncoder, round_weight
from tests.model.samples import assert_same_weights, plan_of, random_encoder, small_config

IDS = torch.arange(24).reshape(2, 12)
ALL = torch.ones(2, 12)


def rounded_encoder(**changes: Any) -> RoundedEncoder:
    """Return a random encoder with a random rounding plan."""
    model = random_encoder(small_config(head_transform=True, **changes))
    return RoundedEncoder(model, plan_of(model))


def test_weights_lie_on_a_grid_of_their_own_row() -> None:
    # After division by the smoothing factors, a row has at most 255 different values.
    generator = torch.Generator().manual_seed(2)
    weight = torch.randn(7, 500, generator=generator)
    factors = torch.rand(500, generator=generator) + 0.5
    factors[:3] = 0
    rounded = round_weight(weight, factors)
    smoothed = rounded[:, 3:] / factors[3:]
    multiples = smoothed / (smoothed.abs().amax(dim=1, keepdim=True) / 127)
    torch.testing.assert_close(multiples, multiples.round(), rtol=0, atol=1e-3)
    torch.testing.assert_close(rounded, weight, rtol=0, atol=0.04)
    torch.testing.assert_close(round_weight(rounded, factors), rounded, rtol=1e-6, atol=1e-8)
    assert torch.equal(rounded[:, :3], weight[:, :3])
    assert bool((round_weight(torch.zeros(2, 500), factors) == 0).all())


def test_the_rounded_copy_computes_what_training_computed() -> None:
    # Rounding changes logits by less than 20 % of their standard deviation, and no weight.
    rounded = rounded_encoder()
    plain, moved = rounded.model(IDS, ALL).detach(), rounded.logits(IDS, ALL).detach()
    assert 0 < float((plain - moved).abs().max()) < 0.2 * float(plain.std())
    assert torch.equal(rounded.model(IDS, ALL), plain)
    rounded_copy = rounded.rounded_copy()
    torch.testing.assert_close(rounded_copy(IDS, ALL).detach(), moved)
    for name in (TABLE, "blocks.0.value.weight", "blocks.1.ffn_out.weight", "head.dense.weight"):
        assert not torch.equal(rounded_copy.get_parameter(name), rounded.model.get_parameter(name))


def test_gradients_reach_the_weights_behind_the_rounded_ones() -> None:
    rounded = rounded_encoder()
    gradients = []
    for model, logits in (
        (rounded.model, rounded.logits(IDS, ALL)),
        (rounded_copy := rounded.rounded_copy(), rounded_copy(IDS, ALL)),
    ):
        loss = torch.nn.functional.cross_entropy(logits, torch.arange(24))
        loss.backward()  # type: ignore[no-untyped-call]  # torch publishes no type for it
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        if gradient is None:
            assert gradients[1][name] is None
        else:
            torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-4, atol=1e-6)


def test_a_run_ends_on_the_grid_of_the_plan_it_began_with(pretraining: Any, no_curve: None) -> None:
    # The checkpoint records the rounding of the weights, also of a resumed run.
    settings = {"steps": 20, "round_weights": True, "checkpoint_every_steps": 10}
    whole = pretraining(name="whole", **settings)
    whole.run()
    pretraining(name="parts", **settings).run(until_step=10)
    resumed = pretraining(name="parts", weights_seed=5, **settings)
    resumed.resume()
    resumed.run()
    assert_same_weights(resumed.model, whole.model)
    saved = load_checkpoint(resumed.directory)
    assert saved.rounding is not None
    table, factors = saved.model.embeddings.word.weight, saved.rounding.factors[VOCABULARY]
    torch.testing.assert_close(round_weight(table, factors), table, rtol=1e-6, atol=1e-8)
    assert not torch.equal(table, resumed.model.get_parameter(TABLE))
