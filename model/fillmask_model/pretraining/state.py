"""Files of a run in its output, and the training state from which the run can resume."""

from __future__ import annotations

import argparse
import pickle
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from fillmask_model.checkpoints.checkpoint import FILES, is_own_checkpoint
from fillmask_model.files import atomic_replace
from fillmask_model.output_files import reject_foreign_files, reject_inputs
from fillmask_model.plots import CURVE_NAME
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.progress import LOG_NAME
from fillmask_model.pretraining.row_files import read_key

STATE_NAME = "train_state.pt"
ROWS_NAME = "rows.safetensors"
# a resumed run may change only its length, decay and intervals
MAY_CHANGE = {"steps", "decay_steps", "evaluate_every_steps", "checkpoint_every_steps"}


def write_state(directory: Path, config: TrainConfig, state: dict[str, Any]) -> None:
    with atomic_replace(directory / STATE_NAME) as temporary:
        torch.save({"config": asdict(config), **state}, temporary)


def read_state(directory: Path, config: TrainConfig) -> dict[str, Any]:
    """Read the state of a run, with all tensors on the CPU.

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
    # states of earlier versions lack newer fields, whose defaults change nothing, and have fields
    # that are gone, which changed nothing if they were 0
    defaults = {field.name: field.default for field in fields(TrainConfig)}
    gone = {
        name for name, value in state["config"].items() if name == "frequent_tokens" or not value
    }
    before, now = defaults | state["config"], asdict(config)
    changed = [
        f"{name} must be {before.get(name)!r} (got {now.get(name)!r})"
        for name in sorted(now.keys() | (before.keys() - gone))
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


def check_output(options: argparse.Namespace, texts: list[Path]) -> None:
    """Reject an output in which the run would replace its inputs or files of the user."""
    output = options.output
    rows, logs = output / ROWS_NAME, [LOG_NAME, CURVE_NAME]
    names = [*FILES, STATE_NAME]
    start = [options.init / name for name in FILES] if options.init else []
    inputs = [*texts, *start, options.tokenizer, options.config]
    # a resumed run replaces only files of its own, among which an input may be
    written = [ROWS_NAME] if options.resume else [*names, *logs, ROWS_NAME]
    reject_inputs(inputs, [output / name for name in written])
    own, begun = is_own_checkpoint(output), read_key(rows) is not None
    reject_foreign_files(output, [ROWS_NAME], own=begun)
    reject_foreign_files(output, names, own=own)
    # the logs begin before the first checkpoint
    reject_foreign_files(output, logs, own=own or begun)
