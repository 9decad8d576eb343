"""File with the training state, from which a run can resume."""

from __future__ import annotations

import pickle
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from fillmask_model.files import atomic_replace
from fillmask_model.training.config import TrainConfig

STATE_NAME = "train_state.pt"
# a resumed run may change only its length, decay and intervals
MAY_CHANGE = {"steps", "decay_steps", "evaluate_every_steps", "checkpoint_every_steps"}


def write_state(directory: Path, config: TrainConfig, state: dict[str, Any]) -> None:
    """Replace the state in a directory atomically."""
    with atomic_replace(directory / STATE_NAME) as temporary:
        torch.save({"config": asdict(config), **state}, temporary)


def read_state(directory: Path, config: TrainConfig) -> dict[str, Any]:
    """Read the state of a run, with all tensors on the CPU.

    Args:
        config: configuration of the resumed run. Only its length, decay and intervals may change.

    Raises:
        ValueError: the state is missing or incomplete, or belongs to another configuration.
    """
    path = directory / STATE_NAME
    if not path.is_file():
        raise ValueError(f"{path} does not exist; start the run without --resume")
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError):
        raise ValueError(f"{path} is incomplete or not a training state; start a new run") from None
    # states of earlier versions lack newer fields, whose defaults change nothing
    defaults = {field.name: field.default for field in fields(TrainConfig)}
    before, now = defaults | state["config"], asdict(config)
    changed = [
        f"{name} must be {before.get(name)!r} (got {now.get(name)!r})"
        for name in sorted(before.keys() | now.keys())
        if name not in MAY_CHANGE and before.get(name) != now.get(name)
    ]
    if changed:
        raise ValueError(
            f"{path} has another configuration: {', '.join(changed)}; "
            f"change only {', '.join(sorted(MAY_CHANGE))}"
        )
    if state["step"] > config.steps:
        raise ValueError(
            f"steps must be at least {state['step']}, the step of {path} (got {config.steps})"
        )
    return state
