"""Held-out accuracy by training tokens, over the phases of a long run.

    python -m benchmarks.quality.training_curve runs/default/phase_7 runs/default/phase_8 ...

Every phase starts from the averaged weights of the previous phase. The curve counts the tokens
from the start of the first phase. The accuracies are those of the averaged weights in PyTorch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.running_server import ROOT
from fillmask_model.training.progress import LOG_NAME, MILLION

COLUMNS = ("phase", "step", "tokens", "held_out_loss", "held_out_top_1", "held_out_top_5")
TABLE = ROOT / "docs" / "training_long_run.tsv"
PLOT = ROOT / "docs" / "training_long_run.png"


def read_evaluations(phases: Sequence[Path]) -> list[dict[str, float | str]]:
    """Return one row per evaluation, with the tokens from the start of the first phase."""
    rows: list[dict[str, float | str]] = []
    earlier_tokens = 0
    for phase in phases:
        *whole, _ = (phase / LOG_NAME).read_text(encoding="utf-8").split("\n")
        lines = [json.loads(line) for line in whole]
        for line in lines:
            if "held_out_top_1" in line:
                figures = {name: line[name] for name in COLUMNS[1:]}
                figures["tokens"] += earlier_tokens
                rows.append({"phase": phase.name, **figures})
        earlier_tokens += lines[-1]["tokens"]
    return rows


def write_table(rows: Sequence[dict[str, float | str]], path: Path) -> None:
    """Write the rows as tab-separated values with a header."""
    lines = ["\t".join(COLUMNS)]
    for row in rows:
        values = (row[name] for name in COLUMNS)
        lines.append("\t".join(f"{v:.4f}" if isinstance(v, float) else str(v) for v in values))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw(rows: Sequence[dict[str, float | str]], path: Path) -> None:
    """Plot top 1 and top 5 in percent by million tokens, with one colour per phase."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), COLUMNS[-2:], strict=True):
        for phase in dict.fromkeys(row["phase"] for row in rows):
            points = [
                (float(row["tokens"]) / MILLION, 100 * float(row[name]))
                for row in rows
                if row["phase"] == phase
            ]
            axes.plot(*zip(*points, strict=True), marker=".", label=str(phase).replace("_", " "))
        axes.set(xlabel="million tokens", ylabel=f"held-out {name[9:].replace('_', ' ')}, %")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Write the table and the plot of the phases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phases", nargs="+", type=Path, help="directories of the phases, in order")
    rows = read_evaluations(parser.parse_args().phases)
    write_table(rows, TABLE)
    draw(rows, PLOT)


if __name__ == "__main__":
    main()
