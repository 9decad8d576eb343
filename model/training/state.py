"""Everything that a training run needs to continue, in one file."""

from __future__ import annotations

import pickle
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from model.files import replacing
from model.training.config import TrainConfig

STATE_NAME = "train_state.pt"
# a run may become longer or shorter; everything else would make it another run
MAY_CHANGE = {"steps", "decay_steps", "evaluate_every_steps", "checkpoint_every_steps"}


def write_state(directory: Path, config: TrainConfig, state: dict[str, Any]) -> None:
    """Replace the state in a directory by this one, atomically."""
    with replacing(directory / STATE_NAME) as temporary:
        torch.save({"config": asdict(config), **state}, temporary)


def read_state(directory: Path, config: TrainConfig, device: torch.device) -> dict[str, Any]:
    """Read the state of a run to continue.

    Args:
        directory: of the run.
        config: of the run from now on; length, decay and intervals may differ from before.
        device: receives the tensors.

    Raises:
        ValueError: there is no state, it is incomplete, or it belongs to another configuration.
    """
    path = directory / STATE_NAME
    if not path.is_file():
        raise ValueError(f"{path} does not exist: there is no run to resume")
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError):
        raise ValueError(f"{path} is not a whole training state") from None
    before, now = state["config"], asdict(config)
    changed = [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r} now"
        for name in sorted(before.keys() | now.keys())
        if name not in MAY_CHANGE and before.get(name) != now.get(name)
    ]
    if changed:
        raise ValueError(
            f"{path} belongs to a run with another configuration: {'; '.join(changed)}. "
            f"Only {', '.join(sorted(MAY_CHANGE))} may change."
        )
    if state["step"] > config.steps:
        raise ValueError(
            f"{path} is at step {state['step']}: steps must be at least that (got {config.steps})"
        )
    return state
