"""Loop over the epochs of a fine-tuning run, whatever it learns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.fine_tuning.config import FineTuneConfig
from fillmask_model.optimization import adamw, check_loss, update

HISTORY_NAME = "history.jsonl"

_Batch = TypeVar("_Batch")


@dataclass(frozen=True, slots=True)
class Epoch:
    """Results of an epoch.

    Attributes:
        epoch: number of the epoch, from 1.
        steps: number of optimizer steps since the start of the run.
        metrics: figures of the validation data by name.
    """

    epoch: int
    steps: int
    training_loss: float
    metrics: dict[str, float]

    def append_to(self, directory: Path) -> None:
        """Append the results to history.jsonl."""
        fields = {"epoch": self.epoch, "steps": self.steps, "training_loss": self.training_loss}
        fields |= {f"validation_{name}": value for name, value in self.metrics.items()}
        with (directory / HISTORY_NAME).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(fields) + "\n")


class Objective(Protocol[_Batch]):
    """What a run learns."""

    model: TiedEncoder  # on the device of the run
    steps_per_epoch: int

    def batches(self, epoch: int) -> Iterable[_Batch]:
        """Return the batches of an epoch, counted from 1."""

    def loss(self, batch: _Batch, step: int) -> Tensor:
        """Return the mean loss of a batch at a step, counted from 1."""

    def evaluate(self) -> dict[str, float]:
        """Return figures of the validation data by name."""

    def describe(self, metrics: dict[str, float]) -> str:
        """Return the figures as a phrase for the terminal."""


def fine_tune(
    objective: Objective[_Batch],
    config: FineTuneConfig,
    on_epoch: Callable[[Epoch], None],
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train an encoder for the configured number of epochs, with a validation after each.

    Returns:
        True for a complete run, False for a run that ended because `stop` was true after a step.

    Raises:
        FloatingPointError: the loss is infinite or NaN.
    """
    model = objective.model
    optimizer = adamw(model, config.learning_rate, config.weight_decay)
    steps, step = config.epochs * objective.steps_per_epoch, 0
    torch.manual_seed(config.seed)  # for dropout
    with tqdm(total=steps, unit=" steps", dynamic_ncols=True) as bar:
        for epoch in range(1, config.epochs + 1):
            model.train()
            losses = []
            for batch in objective.batches(epoch):
                step += 1
                optimizer.zero_grad(set_to_none=True)
                loss = objective.loss(batch, step)
                loss.backward()  # type: ignore[no-untyped-call]  # torch publishes no type for it
                losses.append(float(loss.detach()))
                check_loss(losses[-1], step)
                update(optimizer, config.learning_rate_at(step, steps), config.clip_norm)
                bar.set_postfix_str(f"epoch {epoch}, loss {losses[-1]:.3f}", refresh=False)
                bar.update()
                if stop():
                    return False
            result = Epoch(epoch, step, float(np.mean(losses)), objective.evaluate())
            on_epoch(result)
            bar.write(
                f"epoch {epoch}: training loss {result.training_loss:.4f}, validation "
                f"{objective.describe(result.metrics)}"
            )
    return True
