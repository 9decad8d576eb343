"""Gradients of a run with several processes."""

from __future__ import annotations

import pytest
import torch
from torch import distributed as dist
from torch import nn

from fillmask_model.pretraining.processes import Gradients, Processes


def test_an_unused_parameter_has_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a gradient, AdamW changes neither the parameter nor its moments.
    monkeypatch.setattr(dist, "all_reduce", lambda tensor: tensor.mul_(2))
    used, unused = nn.Linear(2, 1), nn.Linear(2, 1)
    gradients = Gradients(nn.ModuleList([used, unused]), Processes(0, 2))
    for _ in range(2):
        gradients.clear()
        used(torch.ones(1, 2)).sum().backward()
        gradients.sum()
        assert used.weight.grad is not None
        assert used.weight.grad.tolist() == [[2, 2]]
        assert unused.weight.grad is None
