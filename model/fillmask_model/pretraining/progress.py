"""Training log of a run, as metrics.jsonl and curve.png."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fillmask_model.files import atomic_replace

LOG_NAME = "metrics.jsonl"
CURVE_NAME = "curve.png"
NEXT_SENTENCE_ACCURACY = "held_out_next_sentence_accuracy"
NEXT_SENTENCE_LOSS = "held_out_next_sentence_loss"
MILLION = 1e6


class MetricsLog:
    """Log with one JSON object per line, flushed after each line.

    Args:
        first_step: first step of a run, which may repeat later steps. Their lines go.
    """

    def __init__(self, directory: Path, first_step: int) -> None:
        self.path = directory / LOG_NAME
        kept = [line for line in self.read() if line["step"] < first_step]
        with atomic_replace(self.path) as temporary:
            temporary.write_text("".join(json.dumps(line) + "\n" for line in kept))

    def read(self) -> list[dict[str, Any]]:
        """Return all lines but the last one, which a killed process left incomplete."""
        if not self.path.exists():
            return []
        *whole, _ = self.path.read_text().split("\n")
        return [json.loads(line) for line in whole]

    def append(self, **figures: float) -> None:
        with self.path.open("a") as stream:
            stream.write(json.dumps(figures) + "\n")


def draw_curve(log: MetricsLog) -> None:
    # imported here, because the import takes half a second and plots are rare
    from matplotlib.figure import Figure  # noqa: PLC0415

    lines = log.read()
    training = [(line["tokens"] / MILLION, line["loss"]) for line in lines if "loss" in line]
    held_out = [line for line in lines if "held_out_loss" in line]
    figure = Figure(figsize=(9, 4), layout="constrained")
    losses, accuracies = figure.subplots(1, 2)
    if training:
        losses.plot(*zip(*training, strict=True), label="training", linewidth=0.8, alpha=0.6)
    if held_out:
        tokens = [line["tokens"] / MILLION for line in held_out]
        losses.plot(tokens, [line["held_out_loss"] for line in held_out], label="held out")
        accuracies.plot(tokens, [100 * line["held_out_top_1"] for line in held_out], label="top 1")
        accuracies.plot(tokens, [100 * line["held_out_top_5"] for line in held_out], label="top 5")
        pairs = [
            (line["tokens"] / MILLION, 100 * line[NEXT_SENTENCE_ACCURACY])
            for line in held_out
            if NEXT_SENTENCE_ACCURACY in line
        ]
        if pairs:
            accuracies.plot(*zip(*pairs, strict=True), label="next sentence")
    losses.set(xlabel="million tokens seen", ylabel="cross-entropy, nats")
    accuracies.set(xlabel="million tokens seen", ylabel="held-out masked accuracy, %")
    for axes in (losses, accuracies):
        axes.grid(alpha=0.3)
        if axes.has_data():
            axes.legend()
    figure.savefig(log.path.with_name(CURVE_NAME), dpi=120)
