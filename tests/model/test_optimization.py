"""Devices for training."""

from __future__ import annotations

import pytest
import torch

from fillmask_model.optimization import choose_device


@pytest.mark.parametrize(
    ("name", "has_gpu", "chosen"),
    [
        ("auto", True, "cuda"),
        ("auto", False, "cpu"),
        ("cpu", True, "cpu"),
        ("cuda", True, "cuda"),
    ],
)
def test_a_gpu_is_used_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, name: str, chosen: str, *, has_gpu: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    assert choose_device(name) == chosen


@pytest.mark.parametrize(
    ("version", "reason"), [(None, "this PyTorch has no CUDA"), ("12.8", "PyTorch finds no GPU")]
)
def test_a_gpu_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, version: str | None, reason: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", version)
    message = f"--device cuda needs an NVIDIA GPU, but {reason}; use --device cpu"
    with pytest.raises(ValueError, match=message):
        choose_device("cuda")
