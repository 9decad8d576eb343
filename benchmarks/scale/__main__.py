"""Run the recipes of docs/scale-out.md as written, and compare and measure them.

    .venv-dev/bin/python -m benchmarks.scale [--rows N] [--environment DIRECTORY]

Ray and Spark must give the answers of the command in every row: the same best token and the same
score, bit for bit. This also holds after a kill -9 of a worker. After a kill -9 of the driver, the
same script must refuse to write. With the default number of rows, the medians of three runs replace
the table of the page. Needs Linux, and Java for Spark.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import generated_block
from benchmarks.comparison.machine import hardware_with
from benchmarks.scale.rows import write_texts
from benchmarks.scale.run import Run
from benchmarks.scale.ways import PAGE, TEXTS, CheckError, Trial, Way, ways

ROWS, ROUNDS = 20_000, 3
NAME = "scale/__main__"


def main() -> int:
    """Print the table, and write it to the page. Return 1 if a check fails."""
    options = _parser().parse_args()
    machine = hardware_with(f"{len(os.sched_getaffinity(0))}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            runs = check(ways(options.environment), Path(folder), options.rows)
        except CheckError as error:
            print(error, file=sys.stderr)
            return 1
    text = table(runs, options.rows, machine)
    print(text)
    if options.rows == ROWS:
        generated_block.write(PAGE, NAME, text)
    return 0


def check(all_ways: Sequence[Way], folder: Path, rows: int) -> dict[str, list[Run]]:
    """Return the uninterrupted runs of each way, by its name.

    Raises:
        CheckError: a way loses, doubles or changes rows, or doesn't end as the page says.
    """
    write_texts(texts := folder / TEXTS, rows)
    command, *engines = all_ways

    def trial(way: Way) -> Trial:
        return Trial(way, Path(tempfile.mkdtemp(dir=folder)), texts)

    first = trial(command)
    first.fill()
    if len(expected := first.answers()) != rows:
        raise CheckError(f"the command must write {rows} rows (got {len(expected)})")
    for way in engines:
        killed = trial(way)
        killed.fill_despite_kill()
        killed.check_answers(expected)
        trial(way).refuse_after_kill()
    runs: dict[str, list[Run]] = {way.name: [] for way in all_ways}
    for _ in range(ROUNDS):
        for way, measured in zip(all_ways, runs.values(), strict=True):
            whole = trial(way)
            measured.append(whole.fill())
            whole.check_answers(expected)
    return runs


def table(runs: dict[str, list[Run]], rows: int, machine: Sequence[str]) -> str:
    """Return the median figures and the machine in Markdown."""
    lines = [
        f"| {rows:,} rows | rows/s | CPU-s per 1,000 rows | peak MB |",
        "| --- | --: | --: | --: |",
    ]
    for name, measured in runs.items():
        rows_per_s = rows / statistics.median(run.seconds for run in measured)
        cpu_s = 1e3 / rows * statistics.median(run.cpu_s for run in measured)
        peak_mb = statistics.median(run.peak_bytes for run in measured) / 1e6
        lines.append(f"| {name} | {rows_per_s:.0f} | {cpu_s:.1f} | {peak_mb:.0f} |")
    return "\n".join([*lines, "", *(f"- {line}" for line in machine)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--rows", type=int, default=ROWS, help="(default: %(default)s)")
    parser.add_argument(
        "--environment",
        type=Path,
        default=Path(".venv-scale"),
        help="environment with fillmask, Ray and Spark (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
