"""Learning rate, AdamW and precision of every training."""

from __future__ import annotations

import argparse
import math

import torch
from torch import nn

DEVICES = ("auto", "cpu", "cuda")


def learning_rate(
    peak: float, step: int, *, warmup_steps: int, decay_steps: int, zero_step: int
) -> float:
    """Return the learning rate of a step, counted from 1: a linear rise, the peak, a linear fall.

    Args:
        zero_step: step at which the rate reaches 0, `decay_steps` after its peak.
    """
    rise = step / warmup_steps if warmup_steps else 1.0
    fall = (zero_step - step) / decay_steps
    return peak * min(rise, fall, 1.0)


def adamw(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.999),
) -> torch.optim.AdamW:
    """Return AdamW (Loshchilov & Hutter 2019) with weight decay for matrices only."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, fused=True)


def update(optimizer: torch.optim.Optimizer, learning_rate: float, clip_norm: float) -> None:
    """Take a step at a learning rate, with a limit of the global gradient norm."""
    parameters: list[nn.Parameter] = []
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
        parameters += group["params"]
    nn.utils.clip_grad_norm_(parameters, clip_norm)
    optimizer.step()


def check_loss(loss: float, step: int) -> None:
    """Raise a FloatingPointError for a loss that is infinite or NaN."""
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"the loss must be finite (got {loss} at step {step}); reduce learning_rate"
        )


def add_device_flag(parser: argparse.ArgumentParser) -> None:
    help_text = (
        "processor for the training (default: %(default)s, which is cuda if PyTorch finds a GPU)"
    )
    parser.add_argument("--device", choices=DEVICES, default="auto", help=help_text)


def choose_device(name: str) -> str:
    """Return "cpu" or "cuda".

    Raises:
        ValueError: PyTorch finds no GPU for "cuda".
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        build = "this PyTorch has no CUDA" if torch.version.cuda is None else "PyTorch finds no GPU"
        raise ValueError(f"--device cuda needs an NVIDIA GPU, but {build}; use --device cpu")
    return name


def autocast(device: torch.device) -> torch.autocast:
    """Return a context in which matrix products use bfloat16, where the device supports it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16(device.type))


def has_bfloat16(device: str) -> bool:
    """Return whether the device multiplies bfloat16 matrices natively."""
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu.get_capabilities().get("avx512_bf16"))
