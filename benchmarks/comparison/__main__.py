"""Benchmark of fillmask and other servers, for docs/performance.md."""

from __future__ import annotations

import argparse
import os

from benchmarks.comparison.http.comparison import Plan
from benchmarks.comparison.http.load import check_wrk
from benchmarks.comparison.http.memory import REQUESTS
from benchmarks.comparison.page.page import PAGE, write_page
from benchmarks.comparison.run import run_comparison, run_scaling
from benchmarks.comparison.workspace import COMPARISON_SIZES

PARTS = ("comparison", "scaling")
CONCURRENCIES = (1, 8, 32)
MAX_SERVER_CPUS = 2


def main() -> None:
    """Measure the parts that the flags select and write the page."""
    options = _parser().parse_args()
    check_wrk()
    available = sorted(os.sched_getaffinity(0))
    server_cpus = tuple(available[:MAX_SERVER_CPUS])
    plan = Plan(
        rounds=options.rounds,
        seconds=options.seconds,
        concurrencies=CONCURRENCIES,
        server_cpus=server_cpus,
        # separate CPUs for the clients, if any
        client_cpus=tuple(available[MAX_SERVER_CPUS:]) or server_cpus,
    )
    if "comparison" in options.parts:
        run_comparison(plan, options.models, with_installed_sizes=options.sizes)
    if "scaling" in options.parts:
        run_scaling(plan, options.memory_requests)
    write_page()
    print(f"written: {PAGE}")


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
        "--models",
        nargs="+",
        choices=COMPARISON_SIZES,
        default=COMPARISON_SIZES,
        help="model sizes (default: all)",
    )
    parser.add_argument(
        "--parts",
        nargs="*",
        choices=PARTS,
        default=PARTS,
        help="parts to measure (default: all). Without a part, the command only writes the page "
        "from the latest results.",
    )
    parser.add_argument("--sizes", action="store_true", help="also measure installed sizes")
    parser.add_argument(
        "--memory-requests",
        type=int,
        default=REQUESTS,
        help="number of requests for the memory measurement (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    main()
