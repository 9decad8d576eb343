"""Runner of a comparison, from the preparation to the results in the cache."""

from __future__ import annotations

import datetime as dt
import json
import statistics
import subprocess
import sys
from collections.abc import Iterable

from benchmarks.comparison.http import memory
from benchmarks.comparison.http.comparison import (
    HttpComparison,
    Plan,
    describe_texts,
    measure_null_server,
)
from benchmarks.comparison.http.contenders import contenders
from benchmarks.comparison.http.installed_size import installed_bytes
from benchmarks.comparison.http.latency import LatencyComparison
from benchmarks.comparison.in_process import scaling
from benchmarks.comparison.in_process.comparison import InProcessComparison
from benchmarks.comparison.machine import describe
from benchmarks.comparison.process import environment
from benchmarks.comparison.results import Comparison, SizeResults
from benchmarks.comparison.workspace import LARGE_VOCABULARY_SIZE, ROOT, Workspace
from fillmask.bundles.bundle import default_bundle_path


def run_comparison(plan: Plan, sizes: Iterable[str], *, with_installed_sizes: bool) -> None:
    """Run the comparisons over HTTP and in-process with interleaved rounds.

    The function writes the results after every round, so that an interrupted run keeps its finished
    rounds.
    """
    for size in sizes:
        prepare(size)
    comparison = Comparison(
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        machine=describe(plan.server_cpus, plan.client_cpus),
        cpus=len(plan.server_cpus),
        seconds=plan.seconds,
        rounds=plan.rounds,
        sizes={size: _describe_size(Workspace(size)) for size in sizes},
        installed_bytes=installed_bytes() if with_installed_sizes else {},
    )
    comparison.null_server = measure_null_server(plan)
    turns = []
    for size, results in comparison.sizes.items():
        http_comparison = HttpComparison(Workspace(size), plan, results)
        in_process = InProcessComparison(size, plan.server_cpus, plan.seconds, results)
        known = contenders(Workspace(size), comparison.cpus)
        for contender in known:
            http_comparison.choose_setting(contender)
        in_process.choose_settings()
        latency = LatencyComparison(Workspace(size), plan, results)
        turns.append((http_comparison, latency, in_process, known))
    for number in range(plan.rounds):
        for http_comparison, latency, in_process, known in turns:
            for contender in known:
                http_comparison.visit(contender, number)
            latency.round()
            in_process.round()
        comparison.write()


def run_scaling(plan: Plan, memory_requests: int) -> None:
    """Measure the scaling curves and the memory over many requests to the built-in model."""
    for size in (scaling.SIZE, LARGE_VOCABULARY_SIZE):
        prepare(size)
    scaling.Scaling(
        machine=describe(plan.server_cpus, plan.client_cpus),
        curves=scaling.measure_curves(plan.server_cpus, plan.seconds),
        texts_per_s_by_threads=scaling.measure_threads(plan.server_cpus, plan.seconds),
        memory=memory.measure(default_bundle_path(), plan, memory_requests),
    ).write()


def prepare(size: str) -> None:
    """Create the files of a model size in a separate process, because it imports torch."""
    command = [sys.executable, "-m", "benchmarks.comparison.prepare", size]
    subprocess.run(command, cwd=ROOT, env=environment(), check=True)


def _describe_size(workspace: Workspace) -> SizeResults:
    config = json.loads((workspace.checkpoint / "config.json").read_text())
    tokens, masks = describe_texts(workspace)
    return SizeResults(
        parameters=f"{config['num_hidden_layers']} layers of {config['hidden_size']}, "
        f"vocabulary {config['vocab_size']}",
        texts=len(tokens),
        mean_tokens=statistics.mean(tokens),
        mean_masks=statistics.mean(masks),
    )
