"""Throughput without HTTP, on tokenized texts.

    python -m benchmarks.comparison.in_process SIZE VARIANT SETTING THREADS SECONDS

The script prints texts/s. Each measurement has its own process, so that runtimes and their threads
do not affect each other.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from benchmarks.comparison.contenders import variants
from benchmarks.comparison.contenders.contender import Job
from benchmarks.comparison.process import output_of
from benchmarks.comparison.results import SizeResults
from benchmarks.comparison.texts import masked_texts
from benchmarks.comparison.workspace import Workspace
from fillmask.engine.linux.memory import move_to_huge_pages

LIMIT_S = 180


class InProcessComparison:
    """Comparison of one model size, in which all variants take turns in each round.

    Args:
        workspace: files of the size.
        cpus: CPUs with one thread each.
        seconds: duration of each measurement.
        results: object to which the methods add figures.
    """

    def __init__(
        self, workspace: Workspace, cpus: Sequence[int], seconds: float, results: SizeResults
    ) -> None:
        self._size = workspace.size
        self._cpus = cpus
        self._seconds = seconds
        self._results = results
        self._chosen = {
            variant.name: max(variant.settings, key=lambda one: self._measure(variant.name, one))
            if len(variant.settings) > 1
            else next(iter(variant.settings))
            for variant in variants(workspace).values()
        }

    def round(self) -> None:
        """Measure every variant once."""
        for variant, setting in self._chosen.items():
            texts_per_s = self._measure(variant, setting)
            self._results.in_process.setdefault(variant, []).append(texts_per_s)

    def _measure(self, variant: str, setting: str) -> float:
        arguments = [self._size, variant, setting, str(len(self._cpus)), str(self._seconds)]
        module = "benchmarks.comparison.in_process"
        try:
            printed = output_of(module, arguments, self._cpus, LIMIT_S)
        except subprocess.TimeoutExpired:
            # OpenVINO in bf16 has hung once. That must not cost an hour's other measurements.
            print(f"{self._size}: {variant} hangs, second try", file=sys.stderr)
            printed = output_of(module, arguments, self._cpus, LIMIT_S)
        texts_per_s = float(printed.split()[-1])
        print(f"{self._size}: {variant}, {setting}: {texts_per_s:.1f} texts/s", file=sys.stderr)
        return texts_per_s


def drive(jobs: Sequence[Job], threads: int, seconds: float) -> float:
    """Measure texts/s of threads that repeat the jobs in turn.

    Every thread runs every job once before the measurement, so that the figure excludes compilation
    and allocation for each shape.
    """
    everybody_ready = threading.Barrier(threads)
    turns = itertools.cycle(jobs)
    turns_lock = threading.Lock()
    finished = [0] * threads
    started_s, ended_s = [0.0] * threads, [0.0] * threads

    def work(number: int) -> None:
        for _, run in jobs:
            run()
        everybody_ready.wait()
        started_s[number] = ended_s[number] = time.perf_counter()
        while ended_s[number] - started_s[number] < seconds:
            with turns_lock:
                texts, run = next(turns)
            run()
            finished[number] += texts
            ended_s[number] = time.perf_counter()

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(finished) / (max(ended_s) - min(started_s))


def main() -> None:
    """Measure one variant and print its texts/s."""
    size, variant, setting, threads, seconds = sys.argv[1:]
    workspace = Workspace(size)
    tokenizer = workspace.tokenizer()
    texts = [tokenizer.encode(text) for text in masked_texts()]
    jobs = variants(workspace)[variant].settings[setting](texts, int(threads))
    move_to_huge_pages([])  # gives the other runtimes the same huge pages as the service's runtime
    print(drive(jobs, int(threads), float(seconds)))


if __name__ == "__main__":
    main()
