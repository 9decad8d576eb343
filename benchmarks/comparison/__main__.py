"""Benchmark of fillmask and other servers on the same weights, texts and CPUs.

It writes docs/performance.md after every round, so that an interrupted run keeps its finished
rounds. Each contender runs in a process of its own.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable

from benchmarks.comparison.contenders import alone, busy
from benchmarks.comparison.in_process import InProcessComparison
from benchmarks.comparison.installed_size import installed_bytes
from benchmarks.comparison.load import check_wrk
from benchmarks.comparison.machine import describe
from benchmarks.comparison.one_at_a_time import LatencyComparison
from benchmarks.comparison.over_http import BusyComparison, Plan
from benchmarks.comparison.page import PAGE, write_page
from benchmarks.comparison.process import environment
from benchmarks.comparison.results import Comparison, SizeResults
from benchmarks.comparison.texts import masked_texts
from benchmarks.comparison.workspace import ROOT, SIZES, Workspace

MAX_SERVER_CPUS = 2


def main() -> None:
    """Measure the contenders and write the page."""
    options = _parser().parse_args()
    if not options.only_page:
        check_wrk()
        available = sorted(os.sched_getaffinity(0))
        server_cpus = tuple(available[:MAX_SERVER_CPUS])
        plan = Plan(
            rounds=options.rounds,
            seconds=options.seconds,
            concurrencies=(1, 8, 32),
            server_cpus=server_cpus,
            # separate CPUs for the clients, if any
            client_cpus=tuple(available[MAX_SERVER_CPUS:]) or server_cpus,
        )
        _run(plan, options.models, with_installed_sizes=options.sizes)
    write_page(Comparison.read())
    print(f"written: {PAGE}")


def _run(plan: Plan, sizes: Iterable[str], *, with_installed_sizes: bool) -> None:
    """Run all comparisons with interleaved rounds."""
    for size in sizes:  # in a separate process, because it imports torch
        command = [sys.executable, "-m", "benchmarks.comparison.prepare", size]
        subprocess.run(command, cwd=ROOT, env=environment(), check=True)
    cpus = len(plan.server_cpus)
    comparison = Comparison(
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        machine=describe(plan.server_cpus, plan.client_cpus),
        cpus=cpus,
        seconds=plan.seconds,
        sizes={size: _describe(Workspace(size)) for size in sizes},
    )
    turns = []
    for size, results in comparison.sizes.items():
        workspace = Workspace(size)
        rows = busy(workspace, cpus)
        if with_installed_sizes and not comparison.installed_bytes:
            comparison.installed_bytes = {
                row.name: installed_bytes(row.requirements) for row in rows
            }
        turns.append(
            (
                BusyComparison(workspace, plan, rows, results),
                LatencyComparison(workspace, plan, alone(workspace, cpus), results),
                InProcessComparison(workspace, plan.server_cpus, plan.seconds, results),
            )
        )
    for number in range(plan.rounds):
        for busy_comparison, latency, in_process in turns:
            busy_comparison.round(number)
            latency.round()
            in_process.round()
        comparison.rounds = number + 1
        comparison.write()
        write_page(comparison)


def _describe(workspace: Workspace) -> SizeResults:
    config = json.loads((workspace.checkpoint / "config.json").read_text())
    tokenizer = workspace.tokenizer()
    encoded = [tokenizer.encode(text) for text in masked_texts()]
    return SizeResults(
        parameters=f"{config['num_hidden_layers']} layers of {config['hidden_size']}, "
        f"vocabulary {config['vocab_size']}",
        texts=len(encoded),
        mean_tokens=statistics.mean(len(text.input_ids) for text in encoded),
        mean_masks=statistics.mean(len(text.mask_positions) for text in encoded),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=3, help="number of rounds (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=5,
        help="duration of each measurement, rounded for wrk (default: %(default)s)",
    )
    parser.add_argument(
        "--models", nargs="+", choices=SIZES, default=SIZES, help="model sizes (default: all)"
    )
    parser.add_argument("--sizes", action="store_true", help="also measure installed sizes")
    parser.add_argument(
        "--only-page", action="store_true", help="write the page from the latest results"
    )
    return parser


if __name__ == "__main__":
    main()
