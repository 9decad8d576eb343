"""Devices for training."""

from __future__ import annotations

import pytest
import torch

from fillmask_model.optimization import choose_device


def test_a_gpu_is_used_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for has_gpu, automatic in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda has_gpu=has_gpu: has_gpu)
        assert (choose_device("auto"), choose_device("cpu")) == (automatic, "cpu")
    for version, reason in ((None, "this PyTorch has no CUDA"), ("12.8", "PyTorch finds no GPU")):
        monkeypatch.setattr(torch.version, "cuda", version)
        message = f"--device cuda needs an NVIDIA GPU, but {reason}; use --device cpu"
        with pytest.raises(ValueError, match=message):
            choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("cuda") == "cuda"
