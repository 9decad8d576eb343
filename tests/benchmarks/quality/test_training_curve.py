"""Curve of a long run over several phases."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.quality.training_curve import draw, read_evaluations, write_table


def write_phase(directory: Path, tops: dict[int, float]) -> Path:
    """Write the log of a phase with 10 tokens per step and an evaluation at the given steps."""
    directory.mkdir()
    lines = []
    for step in range(1, max(tops) + 1):
        lines.append({"step": step, "tokens": 10 * step, "loss": 3.0, "learning_rate": 5e-4})
        if step in tops:
            held_out = {"held_out_top_1": tops[step], "held_out_top_5": 0.7, "held_out_loss": 2.5}
            lines.append({"step": step, "tokens": 10 * step, **held_out})
    log = "".join(json.dumps(line) + "\n" for line in lines)
    (directory / "metrics.jsonl").write_text(log + '{"step": 9')  # a killed run's last line
    return directory


def test_counts_tokens_from_the_first_phase(tmp_path: Path) -> None:
    first = write_phase(tmp_path / "phase_7", {2: 0.4, 4: 0.45})
    second = write_phase(tmp_path / "phase_8", {3: 0.5})

    rows = read_evaluations([first, second])
    write_table(rows, tmp_path / "curve.tsv")
    draw(rows, tmp_path / "curve.png")

    assert [row["tokens"] for row in rows] == [20, 40, 70]
    assert (tmp_path / "curve.tsv").read_text().splitlines() == [
        "phase\tstep\ttokens\theld_out_loss\theld_out_top_1\theld_out_top_5",
        "phase_7\t2\t20\t2.5000\t0.4000\t0.7000",
        "phase_7\t4\t40\t2.5000\t0.4500\t0.7000",
        "phase_8\t3\t70\t2.5000\t0.5000\t0.7000",
    ]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
