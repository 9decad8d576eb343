"""Run the recipes of docs/scale-out.md as written, and compare and measure them.

    .venv-dev/bin/python -m benchmarks.scale [--rows N] [--ray ENVIRONMENT] [--spark ENVIRONMENT]

Ray and Spark must give the answers of the command in every row: the same best token and the same
score, bit for bit. This also holds after a kill -9 of a worker. After a kill -9 of the driver, the
same script must refuse to write. With the default number of rows, the figures replace the table of
the page. Needs Linux, and Java for Spark.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import generated_block
from benchmarks.comparison.machine import hardware_with
from benchmarks.scale.rows import write_texts
from benchmarks.scale.run import Run
from benchmarks.scale.ways import PAGE, TEXTS, CheckError, Trial, Way, ways

ROWS = 20_000
NAME = "scale/__main__"


def main() -> int:
    """Print the table, and write it to the page. Return 1 if a check fails."""
    options = _parser().parse_args()
    machine = hardware_with(f"{len(os.sched_getaffinity(0))}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            runs = check(ways(options.ray, options.spark), Path(folder), options.rows)
        except CheckError as error:
            print(error, file=sys.stderr)
            return 1
    text = table(runs, options.rows, machine)
    print(text)
    if options.rows == ROWS:
        generated_block.write(PAGE, NAME, text)
    return 0


def check(all_ways: Sequence[Way], folder: Path, rows: int) -> dict[str, Run]:
    """Return the uninterrupted run of each way, by its name.

    Raises:
        CheckError: a way loses, doubles or changes rows, or doesn't end as the page says.
    """
    write_texts(texts := folder / TEXTS, rows)

    def trial(way: Way, number: int) -> Trial:
        place = folder / f"{way.output}-{number}"
        place.mkdir()
        return Trial(way, place, texts)

    command, *engines = all_ways
    first = trial(command, 0)
    runs = {command.name: first.fill()}
    if len(expected := first.answers()) != rows:
        raise CheckError(f"the command must write {rows} rows (got {len(expected)})")
    for way in engines:
        whole = trial(way, 0)
        runs[way.name] = whole.fill()
        whole.check_answers(expected)
        killed = trial(way, 1)
        killed.fill_despite_kill()
        killed.check_answers(expected)
        trial(way, 2).refuse_after_kill()
    return runs


def table(runs: dict[str, Run], rows: int, machine: Sequence[str]) -> str:
    """Return the figures and the machine in Markdown."""
    lines = [
        f"| {rows:,} rows | rows/s | CPU-s per 1,000 rows | peak MB |",
        "| --- | --: | --: | --: |",
    ]
    lines += [
        f"| {name} | {rows / run.seconds:.0f} | {1e3 * run.cpu_s / rows:.1f} "
        f"| {run.peak_bytes / 1e6:.0f} |"
        for name, run in runs.items()
    ]
    return "\n".join([*lines, "", *(f"- {line}" for line in machine)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--rows", type=int, default=ROWS, help="(default: %(default)s)")
    for engine in ("ray", "spark"):
        parser.add_argument(
            f"--{engine}",
            type=Path,
            default=Path(f".venv-{engine}"),
            help="environment with this engine and fillmask (default: %(default)s)",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
