"""Learning rate by step: linear warm-up, a constant rate, linear decay to zero."""

from __future__ import annotations

from model.train_config import TrainConfig


def learning_rate(config: TrainConfig, step: int) -> float:
    """The rate of the step with this number, which begins at 1."""
    rise = step / config.warmup_steps if config.warmup_steps else 1.0
    decay_steps = config.decay_steps or config.steps - config.warmup_steps
    fall = (config.steps - step) / decay_steps
    return config.learning_rate * min(rise, fall, 1.0)
