"""Training log of a run, as metrics.jsonl and curve.png."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fillmask_model.files import atomic_replace
from fillmask_model.plots import Panels, draw_curves

LOG_NAME = "metrics.jsonl"
NEXT_SENTENCE_ACCURACY = "held_out_next_sentence_accuracy"
NEXT_SENTENCE_LOSS = "held_out_next_sentence_loss"
MILLION = 1e6
# curves of each panel by figure of the log, and their scale
_PANELS = {
    "cross-entropy, nats": ({"loss": "training", "held_out_loss": "held out"}, 1),
    "held-out accuracy, %": (
        {
            "held_out_top_1": "top 1",
            "held_out_top_5": "top 5",
            NEXT_SENTENCE_ACCURACY: "next sentence",
        },
        100,
    ),
}


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
    lines = log.read()
    panels: Panels = {}
    for y_label, (names, scale) in _PANELS.items():
        panels[y_label] = {
            label: [(line["tokens"] / MILLION, scale * line[name]) for line in found]
            for name, label in names.items()
            if (found := [line for line in lines if name in line])
        }
    draw_curves(log.path.parent, "million tokens seen", panels)
