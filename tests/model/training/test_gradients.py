"""Gradients of a run with several processes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from model.training import processes
from model.training.processes import Gradients, Processes


def test_an_unused_parameter_has_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a gradient, AdamW changes neither the parameter nor its moments.
    monkeypatch.setattr(processes.dist, "all_reduce", lambda tensor: tensor.mul_(2))
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "unused": nn.Linear(2, 1)})
    gradients = Gradients(model, Processes(0, 2))
    for _ in range(2):
        gradients.clear()
        model["used"](torch.ones(1, 2)).sum().backward()
        gradients.sum()
        assert model["used"].weight.grad.tolist() == [[2, 2]]
        assert model["unused"].weight.grad is None
