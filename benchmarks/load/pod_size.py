"""Throughput of pods with one and with two CPUs, for docs/deploy.md.

    .venv-dev/bin/python -m benchmarks.load.pod_size

`taskset` binds the service with the built-in model to one or two CPUs. The service then uses as
many threads as a pod with that number of CPUs (`service/fillmask/host.py`). wrk runs on the other
CPUs, if any. The script needs Linux, wrk and a quiet machine.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

from benchmarks import generated_block
from benchmarks.comparison.load import check_wrk, load
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.over_http import write_bodies
from benchmarks.comparison.process import running
from benchmarks.comparison.results import Cell
from benchmarks.comparison.texts import masked_texts
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.tokenization.tokenizer import Tokenizer

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
NAME = "load/pod_size"
CPUS, CLIENTS = (1, 2), (8, 32)
ROUNDS, SECONDS, WARM_UP_S = 3, 10.0, 3.0
HEADER = (
    *("CPUs", "clients", "requests/s", "tokens/s", "p50 ms", "p99 ms"),
    "peak memory MB",
)


def main() -> None:
    """Print the measurements and write them to docs/deploy.md."""
    check_wrk()
    table = generated_block.table(HEADER, [row for cpus in CPUS for row in measure(cpus)])
    print(table)
    usable = sorted(os.sched_getaffinity(0))
    machine = hardware(usable[: max(CPUS)], usable[max(CPUS) :] or usable)
    generated_block.write(PAGE, NAME, f"{table}\n\n- {'; '.join(machine)}")


def read_rows() -> list[dict[str, float]]:
    """Read the rows of the table in docs/deploy.md, by the names in HEADER."""
    table = generated_block.read(PAGE, NAME).split("\n\n")[0]
    rows = table.strip().splitlines()[2:]
    return [dict(zip(HEADER, map(float, row.strip("|").split("|")), strict=True)) for row in rows]


def measure(cpus: int) -> list[list[str]]:
    """Measure a pod with each number of clients, and return the rows of the table.

    The figures are medians over the rounds.
    """
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < cpus:
        raise SystemExit(f"the measurement needs {cpus} CPUs (got {len(usable)})")
    texts = masked_texts()
    bodies = write_bodies("bodies", texts)
    tokenizer = Tokenizer.from_bundle(read_bundle(default_bundle_path()))
    tokens = statistics.mean(len(tokenizer.encode(text).input_ids) for text in texts)
    rows = []
    with running([sys.executable, "-m", "fillmask"], usable[:cpus], f"pod-{cpus}") as server:
        for clients in CLIENTS:
            _, *rounds = [
                load(
                    server.port,
                    bodies,
                    concurrency=clients,
                    seconds=seconds,
                    first=0,
                    cpus=usable[cpus:] or usable,
                )
                for seconds in (WARM_UP_S, *[SECONDS] * ROUNDS)
            ]
            cell = Cell.median(rounds)
            rates = (f"{cell.requests_per_s:.0f}", f"{cell.requests_per_s * tokens:.0f}")
            times = (f"{cell.p50_ms:.1f}", f"{cell.p99_ms:.1f}")
            peak_mb = f"{server.peak_rss_bytes() / 1e6:.0f}"
            rows.append([str(cpus), str(clients), *rates, *times, peak_mb])
    return rows


if __name__ == "__main__":
    main()
