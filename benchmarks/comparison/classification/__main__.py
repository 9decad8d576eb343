"""Benchmark of /classify with interleaved rounds, for docs/classification.md."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks import generated_block
from benchmarks.comparison.classification.http_comparison import (
    CLIENTS,
    PIPELINE,
    ClassificationComparison,
    contenders,
)
from benchmarks.comparison.http.comparison import Plan, median_cell
from benchmarks.comparison.http.contenders import OURS_INT8
from benchmarks.comparison.http.load import check_wrk
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.page.figures import median_ratio, spread
from benchmarks.comparison.page.table import table
from benchmarks.comparison.process import environment
from benchmarks.comparison.results import Visit
from benchmarks.comparison.workspace import ROOT

PAGE = ROOT / "docs" / "classification.md"
NAME = "comparison/classification/__main__"
MAX_SERVER_CPUS = 2
COLUMNS = (
    f"requests/s, {CLIENTS} clients",
    "p50 / p99 ms",
    f"{OURS_INT8} / this",
    "spread of rounds",
    "peak RSS MB",
    "same best label",
)


def main() -> None:
    """Prepare the files, measure the contenders and write the table to the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.comparison.classification", description=__doc__
    )
    default_help = "(default: %(default)s)"
    parser.add_argument("--rounds", type=int, default=3, help=f"number of rounds {default_help}")
    parser.add_argument(
        "--seconds", type=float, default=5, help=f"duration of each measurement {default_help}"
    )
    parser.add_argument(
        "--only-print", action="store_true", help="print the table and leave the page unchanged"
    )
    options = parser.parse_args()
    check_wrk()
    available = sorted(os.sched_getaffinity(0))
    server_cpus = tuple(available[:MAX_SERVER_CPUS])
    plan = Plan(
        rounds=options.rounds,
        seconds=options.seconds,
        concurrencies=(CLIENTS,),
        server_cpus=server_cpus,
        client_cpus=tuple(available[MAX_SERVER_CPUS:]) or server_cpus,
    )
    # in a separate process, because it imports torch
    command = [sys.executable, "-m", "benchmarks.comparison.classification.files"]
    subprocess.run(command, cwd=ROOT, env=environment(), check=True)
    machine = hardware(plan.server_cpus, plan.client_cpus)
    comparison = ClassificationComparison(plan)
    known = contenders(len(server_cpus))
    for contender in known:
        comparison.choose_setting(contender)
    for number in range(plan.rounds):
        for contender in known:
            comparison.visit(contender, number)
    block = page_block(comparison.visits, comparison.settings[PIPELINE], machine)
    print(block)
    if not options.only_print:
        generated_block.write(PAGE, NAME, block)


def page_block(
    visits: Mapping[str, Sequence[Visit]], pipeline_setting: str, machine: Sequence[str]
) -> str:
    """Return the table of the contenders, the pipeline's setting and the machine as Markdown."""
    ours = [visit.cells[CLIENTS].requests_per_s for visit in visits[OURS_INT8]]
    rows = []
    for name, own in visits.items():
        speeds = [visit.cells[CLIENTS].requests_per_s for visit in own]
        cell = median_cell(list(own), CLIENTS)
        rows.append(
            [
                name,
                f"{cell.requests_per_s:.1f}",
                f"{cell.p50_ms:.1f} / {cell.p99_ms:.1f}",
                f"{median_ratio(ours, speeds):.2f}x",
                f"{100 * spread(speeds):.0f} %",
                f"{statistics.median(visit.peak_rss_bytes for visit in own) / 1e6:.0f}",
                f"{100 * statistics.median(visit.agreement for visit in own):.1f} %",
            ]
        )
    setting = f"- {PIPELINE}: {pipeline_setting}"
    return "\n".join(
        [table(["contender", *COLUMNS], rows), "", setting, *map("- {}".format, machine)]
    )


if __name__ == "__main__":
    main()
