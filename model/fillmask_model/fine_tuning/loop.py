"""Loop over the epochs of a fine-tuning run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.fine_tuning.config import FineTuneConfig
from fillmask_model.optimization import adamw

_Batch = TypeVar("_Batch")


def fine_tune(
    model: TiedEncoder,
    config: FineTuneConfig,
    *,
    steps_per_epoch: int,
    batches: Callable[[int], Iterable[_Batch]],
    loss: Callable[[_Batch, int], Tensor],
    on_epoch: Callable[[int, int, float], str],
    stop: Callable[[], bool],
    description: str | None = None,
) -> bool:
    """Train an encoder for the configured number of epochs.

    Args:
        batches: function that returns the batches of an epoch, counted from 1.
        loss: function that returns the loss of a batch and a step, counted from 1.
        on_epoch: function that gets the number of an epoch and of its last step with the mean loss,
            and returns a sentence for the terminal.
        stop: stop condition, checked after each step.
        description: text before the progress bar.

    Returns:
        True for a complete run, False for a run that ended because `stop` returned True.

    Raises:
        FloatingPointError: the loss is infinite or NaN.
    """
    optimizer = adamw(model, config.learning_rate, config.weight_decay)
    steps, step = config.epochs * steps_per_epoch, 0
    torch.manual_seed(config.seed)  # for dropout
    with tqdm(total=steps, desc=description, unit=" steps", dynamic_ncols=True) as bar:
        for epoch in range(1, config.epochs + 1):
            model.train()
            losses = []
            for batch in batches(epoch):
                step += 1
                for group in optimizer.param_groups:
                    group["lr"] = config.learning_rate_at(step, steps)
                optimizer.zero_grad(set_to_none=True)
                losses.append(_backward(loss(batch, step), step))
                torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
                optimizer.step()
                bar.set_postfix_str(f"epoch {epoch}, loss {losses[-1]:.3f}", refresh=False)
                bar.update()
                if stop():
                    return False
            bar.write(on_epoch(epoch, step, float(np.mean(losses))))
    return True


def _backward(loss: Tensor, step: int) -> float:
    loss.backward()  # type: ignore[no-untyped-call]  # torch publishes no type for it
    value = float(loss.detach())
    if not math.isfinite(value):
        raise FloatingPointError(
            f"the loss must be finite (got {value} at step {step}); reduce learning_rate"
        )
    return value
