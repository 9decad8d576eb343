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
from dataclasses import dataclass
from pathlib import Path

from benchmarks import generated_block
from benchmarks.comparison.load import check_wrk, load
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.over_http import write_bodies
from benchmarks.comparison.process import running
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


@dataclass(frozen=True, slots=True)
class PodSize:
    """Row of the table for a number of CPUs and a number of clients."""

    cpus: int
    clients: int
    requests_per_s: float
    tokens_per_s: float
    p50_ms: float
    p99_ms: float
    peak_mb: float

    def cells(self) -> list[str]:
        """Format the row."""
        figures = (f"{self.requests_per_s:.0f}", f"{self.tokens_per_s:.0f}")
        times = (f"{self.p50_ms:.1f}", f"{self.p99_ms:.1f}")
        return [str(self.cpus), str(self.clients), *figures, *times, f"{self.peak_mb:.0f}"]


def main() -> None:
    """Print the measurements and write them to docs/deploy.md."""
    check_wrk()
    sizes = [size for cpus in CPUS for size in measure(cpus)]
    table = generated_block.table(HEADER, [size.cells() for size in sizes])
    print(table)
    usable = sorted(os.sched_getaffinity(0))
    machine = hardware(usable[: max(CPUS)], usable[max(CPUS) :] or usable)
    generated_block.write(PAGE, NAME, f"{table}\n\n- {'; '.join(machine)}")


def read_sizes() -> list[PodSize]:
    """Read the rows of the table in docs/deploy.md."""
    table = generated_block.read(PAGE, NAME).split("\n\n")[0]
    rows = table.strip().splitlines()[2:]
    cells = [[float(cell) for cell in row.strip("|").split("|")] for row in rows]
    return [PodSize(int(row[0]), int(row[1]), *row[2:]) for row in cells]


def measure(cpus: int) -> list[PodSize]:
    """Measure a pod with each number of clients.

    The figures are medians over the rounds.
    """
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < cpus:
        raise SystemExit(f"the measurement needs {cpus} CPUs (got {len(usable)})")
    texts = masked_texts()
    bodies = write_bodies("bodies", texts)
    tokenizer = Tokenizer.from_bundle(read_bundle(default_bundle_path()))
    tokens = statistics.mean(len(tokenizer.encode(text).input_ids) for text in texts)
    sizes = []
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
            rate = statistics.median(each.requests_per_s for each in rounds)
            size = PodSize(
                cpus=cpus,
                clients=clients,
                requests_per_s=rate,
                tokens_per_s=rate * tokens,
                p50_ms=statistics.median(each.p50_ms for each in rounds),
                p99_ms=statistics.median(each.p99_ms for each in rounds),
                peak_mb=server.peak_rss_bytes() / 1e6,
            )
            sizes.append(size)
    return sizes


if __name__ == "__main__":
    main()
