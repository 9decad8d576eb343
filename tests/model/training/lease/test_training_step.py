"""Optimizer step with fixed shapes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fillmask_model.data.masking import MaskedBatch
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.training import loop
from fillmask_model.training.lease import training_step
from fillmask_model.training.lease.device_masks import FixedMasks
from fillmask_model.training.lease.device_rows import DeviceRows
from fillmask_model.training.lease.training_step import TrainingStep
from tests.model.samples import assert_same_weights, random_encoder
from tests.model.training.lease.samples import random_rows, tiny_fields

CPU = torch.device("cpu")
COUNTS = {0: 21, 6: 5, 8: 7, 9: 3, 16: 3}


def float32() -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16, enabled=False)


@pytest.fixture
def step(tokenizer: Tokenizer) -> TrainingStep:
    fields = tiny_fields(tokenizer)
    model = random_encoder(fields.encoder).train()
    return TrainingStep(
        model, DeviceRows([random_rows(fields, COUNTS)], fields, CPU), fields, float32
    )


def as_booleans(masked: FixedMasks) -> MaskedBatch:
    """Return masks in the form of the training on CPUs."""
    order = masked.positions.argsort()
    selected = torch.zeros(masked.input_ids.numel(), dtype=torch.bool)
    selected[masked.positions] = True
    return MaskedBatch(masked.input_ids, selected.view_as(masked.input_ids), masked.labels[order])


def gradients(model: TiedEncoder) -> list[Tensor]:
    found = [parameter.grad for parameter in model.parameters()]
    return [torch.zeros(()) if gradient is None else gradient.clone() for gradient in found]


def test_loss_and_gradient_are_those_of_the_training_on_cpus(
    step: TrainingStep, pretraining: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In float32 to 1e-5, with logits in chunks of 5 positions here and in one piece there.
    monkeypatch.setattr(training_step, "POSITIONS_AT_ONCE", 5)
    monkeypatch.setattr(loop, "has_bfloat16", lambda _: False)
    step.prepare(0, 0)
    masked = step.mask(step._rows.groups[0], step._indices[0])
    loss = step.summed_loss(masked, padded=False)
    loss.backward()  # type: ignore[no-untyped-call]
    here = gradients(step.model)
    run = pretraining()
    run.model = step.model
    step.model.zero_grad()
    expected = run._summed_loss(as_booleans(masked), None)
    expected.backward()
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    for one, other in zip(here, gradients(step.model), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_padding_changes_no_loss(step: TrainingStep) -> None:
    # Two texts of 6 tokens have the loss that they have without two more tokens of padding.
    group = step._rows.groups[8]
    short = (group.ids != step._pad).sum(dim=1) == 6
    ids = group.ids[short][:2].long()
    positions = torch.tensor([1, 3, 10])
    masked = FixedMasks(ids, positions, ids.flatten()[positions])
    cut = ids[:, :6]
    its_positions = torch.tensor([1, 3, 8])
    plain = FixedMasks(cut, its_positions, cut.flatten()[its_positions])
    assert torch.equal(masked.labels, plain.labels)
    with torch.no_grad():
        losses = [step.summed_loss(masked, padded=True), step.summed_loss(plain, padded=False)]
    assert float(losses[0]) == pytest.approx(float(losses[1]), abs=1e-4)


def test_both_kinds_of_rows_share_one_divisor(step: TrainingStep) -> None:
    # The loss of a step is the mean over all its positions.
    length = step.prepare(0, 0)
    assert length in {8, 16}
    sums, count = 0.0, 0
    with torch.no_grad():
        for each in (0, length):
            group = step._rows.groups[each]
            masked = step.mask(group, step._indices[each])
            sums += float(step.summed_loss(masked, padded=group.padded))
            count += len(masked.labels)
    step.prepare(0, 0)
    step.compute(length)
    assert float(step.loss_sum) == pytest.approx(sums / count, rel=1e-5)


def test_the_rate_is_read_at_every_step(step: TrainingStep) -> None:
    before = [parameter.clone() for parameter in step.model.parameters()]
    step.compute(step.prepare(0, 0))
    assert all(map(torch.equal, before, step.model.parameters()))
    step.rate.fill_(1e-2)
    step.compute(step.prepare(1, 0))
    assert not any(map(torch.equal, before, step.model.parameters()))


def test_the_average_follows_the_weights(step: TrainingStep) -> None:
    before = step.model.head_bias.detach().clone()
    step.rate.fill_(1e-2)
    step.compute(step.prepare(0, 0))
    expected = (before + step.model.head_bias.detach()) / 2
    torch.testing.assert_close(step.average.model.head_bias, expected)


def test_a_loaded_optimizer_keeps_the_tensor_of_its_rate(step: TrainingStep) -> None:
    step.rate.fill_(1e-2)
    step.compute(step.prepare(0, 0))
    step.load_optimizer(step.optimizer.state_dict())
    assert all(group["lr"] is step.rate for group in step.optimizer.param_groups)


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records operators with the shapes of their results, and rejects waits for the device."""

    # operators whose shapes depend on values, that return a value to the CPU, or that create a
    # tensor of a Python value, which a GPU gets by a copy
    FORBIDDEN = (
        "_local_scalar_dense",
        "nonzero",
        "masked_select",
        "unique",
        "lift_fresh",
        "bincount",
    )

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[tuple[str, Any]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = str(func)
        assert not any(f".{word}" in name or f"{word}." in name for word in self.FORBIDDEN), name
        if "index" in name and isinstance(args[1], list | tuple):
            booleans = [a for a in args[1] if a is not None and a.dtype == torch.bool]
            assert booleans == [], name
        result = func(*args, **(kwargs or {}))
        shape = tuple(result.shape) if isinstance(result, Tensor) else None
        self.seen.append((name, shape))
        return result


def test_a_step_never_waits_and_has_fixed_shapes(step: TrainingStep) -> None:
    # A CUDA graph can contain only such a step.
    step.rate.fill_(1e-3)
    traces: dict[int, list[Any]] = {}
    for number in range(12):
        length = step.prepare(number, 0)
        with Trace() as trace:
            step.compute(length)
        assert len(trace.seen) > 200
        if number > 0:  # the first step creates the state of the optimizer
            assert traces.setdefault(length, trace.seen) == trace.seen
    assert set(traces) == {8, 16}


def test_a_boolean_selection_would_be_noticed(step: TrainingStep) -> None:
    ids = torch.full((2, 8), 7)
    with pytest.raises(AssertionError), Trace():
        step.model.hidden(ids, selected=ids > 5)


def test_a_step_depends_on_its_number_alone(tokenizer: Tokenizer) -> None:
    fields = tiny_fields(tokenizer)
    models = []
    for earlier in (0, 3):
        model = random_encoder(fields.encoder).train()
        rows = DeviceRows([random_rows(fields, COUNTS)], fields, CPU)
        step = TrainingStep(model, rows, fields, float32)
        for number in range(earlier):
            step.prepare(number, 0)
        step.rate.fill_(1e-2)
        step.compute(step.prepare(3, 0))
        models.append(step.model)
    assert_same_weights(*models)
