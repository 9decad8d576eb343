"""Throughput and latency of one process on more CPUs than this machine has.

    .venv-dev/bin/python -m benchmarks.load.many_cpus

Many CPUs can compute batches, but one thread does the HTTP work, and only one thread at a time runs
Python code. The script finds the number of CPUs at which this limits the throughput. It starts the
service on one CPU with a worker per imitated CPU. Instead of a run of onnxruntime, a worker sleeps
for as long as the run would take on one CPU. The imitated CPUs therefore compute only batches, and
real CPUs also do the HTTP work. The latency of a single text is extrapolated from one and two
threads by Amdahl's law. The script needs wrk, Linux and a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from unittest import mock

import numpy as np

from benchmarks.comparison.http.comparison import write_bodies
from benchmarks.comparison.http.load import check_wrk, load
from benchmarks.comparison.in_process.throughput import median_s, model_pass
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.page.table import table
from benchmarks.comparison.process import running
from benchmarks.comparison.texts import TOP_K, masked_texts
from fillmask.__main__ import main as serve
from fillmask.bundles.bundle import Bundle, default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs, ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.registry.verification.golden import check_golden_prompts
from fillmask.tasks.fill_mask.pipeline import FillMaskPipeline
from fillmask.tokenization.tokenizer import Tokenizer

CPUS = (1, 2, 4, 8, 16, 32)
CLIENTS_PER_CPU = 16
# durations relative to the built-in model's. BERT-base takes about seven times as long.
SLOWNESS = {"built-in model": 1, "7 times as slow": 7}
LENGTHS_TOKENS = (16, 64, 256)
ROUNDS, SECONDS, WARM_UP_S = 3, 6.0, 3.0
_BATCH_TEXTS = (1, 2, 4, 7)
_RUNS = 100


def main() -> None:
    """Print the measurements, or serve an imitation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--imitate", nargs=2, type=float, metavar=("RUN_MS", "TOKEN_MS"))
    options, flags = parser.parse_known_args()
    if options.imitate:
        sys.argv[1:] = flags
        serve_imitation(*options.imitate)
        return
    check_wrk()
    usable = sorted(os.sched_getaffinity(0))
    machine = [f"- {line}" for line in hardware(usable[:1], usable[1:])]
    print("\n\n".join([_throughput_table(usable), _latency_table(), "\n".join(machine)]))


def serve_imitation(run_ms: float, token_ms: float) -> None:
    """Serve the built-in model, whose workers sleep once the golden prompts are checked.

    Args:
        run_ms: duration of a run without tokens.
        token_ms: additional duration per token.
    """
    compute = Runtime.run
    checked = False

    def run(self: Runtime, batch: Batch) -> BatchOutputs:
        if not checked:
            return compute(self, batch)
        time.sleep((run_ms + token_ms * len(batch.input_ids)) / 1e3)
        return imitated_outputs(batch)

    async def check_once(bundle: Bundle, fill_mask: FillMaskPipeline) -> None:
        nonlocal checked
        await check_golden_prompts(bundle, fill_mask)
        checked = True

    with (
        mock.patch.object(Runtime, "run", run),
        mock.patch("fillmask.registry.pipelines.check_golden_prompts", check_once),
    ):
        sys.exit(serve())


def imitated_outputs(batch: Batch) -> BatchOutputs:
    """Return outputs of the right shapes with equal log-probabilities."""
    masks, top_k = len(batch.mask_slots), int(batch.top_k[0])
    return BatchOutputs(
        top_ids=np.tile(np.arange(1000, 1000 + top_k), (masks, 1)),
        top_log_probs=np.full((masks, top_k), -np.log(top_k), np.float32),
        target_log_probs=np.zeros(batch.target_ids.shape, np.float32),
    )


def line_through(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the intercept and the slope of the least-squares line through points (x, y)."""
    slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
    return intercept, slope


def amdahl(one_thread: float, two_threads: float, threads: int) -> float:
    """Extrapolate a duration to more threads (Amdahl 1967).

    The part of the duration that a second thread does not shorten stays constant.
    """
    parallel = min(2 * (one_thread - two_threads), one_thread)
    return one_thread - parallel + parallel / threads


def _throughput_table(usable: Sequence[int]) -> str:
    run_ms, token_ms = _run_durations()
    rates = {
        name: {
            cpus: _requests_per_s(cpus, usable, (slowness * run_ms, slowness * token_ms))
            for cpus in CPUS
        }
        for name, slowness in SLOWNESS.items()
    }
    real = {cpus: _requests_per_s(cpus, usable) for cpus in (1, 2)}

    def cell(rate: Mapping[int, float], cpus: int) -> str:
        return f"{rate[cpus]:.0f} ({rate[cpus] / rate[1]:.1f}x)" if cpus in rate else ""

    header = ["CPUs", "real requests/s", *(f"imitated, {name}" for name in rates)]
    columns = [real, *rates.values()]
    return table(header, ([str(cpus), *(cell(c, cpus) for c in columns)] for cpus in CPUS))


def _requests_per_s(
    cpus: int, usable: Sequence[int], imitated_ms: tuple[float, float] | None = None
) -> float:
    """Measure the service on real or imitated CPUs, with enough clients for full batches."""
    if imitated_ms is None:
        command = [sys.executable, "-m", "fillmask"]
        server_cpus = usable[:cpus]
    else:
        command = [sys.executable, "-m", "benchmarks.load.many_cpus", "--imitate"]
        command += [*map(str, imitated_ms), "--intra-op-parallelism", "false"]
        server_cpus = usable[:1]
    command += ["--threads", str(cpus)]
    with running(command, server_cpus, "/health/ready", f"many-cpus-{cpus}") as server:
        measure = partial(
            load,
            server.port,
            write_bodies("bodies", masked_texts()),
            concurrency=CLIENTS_PER_CPU * cpus,
            first=0,
            cpus=usable[len(server_cpus) :] or usable,
        )
        measure(seconds=WARM_UP_S)
        rounds = [measure(seconds=SECONDS) for _ in range(ROUNDS)]
    rate = statistics.median(each.requests_per_s for each in rounds)
    kind = "real" if imitated_ms is None else f"imitated {imitated_ms[0]:.2f} ms"
    print(f"{cpus} CPUs, {kind}: {rate:.0f} requests/s", file=sys.stderr)
    return rate


def _run_durations() -> tuple[float, float]:
    """Return the duration of a run on one thread, as a constant and a part per token, in ms."""
    bundle = read_bundle(default_bundle_path())
    runtime, tokenizer = Runtime(bundle.model_path), Tokenizer.from_bundle(bundle)
    encoded = [tokenizer.encode(text) for text in masked_texts()]
    top_k = TOP_K + len(bundle.special_token_ids)
    passes = [model_pass(text, top_k) for text in encoded]
    points = []
    for texts in _BATCH_TEXTS:
        for start in range(0, len(passes), texts):
            batch = Batch.pack(passes[start : start + texts])
            points.append(
                (float(len(batch.input_ids)), 1e3 * median_s(partial(runtime.run, batch), 5))
            )
    return line_through(points)


def _latency_table() -> str:
    model = default_bundle_path() / "model.onnx"
    one, two = Runtime(model, threads=1), Runtime(model, threads=2)
    measured = []
    for tokens in LENGTHS_TOKENS:
        ids = np.random.default_rng(0).integers(1_000, 30_000, tokens)
        batch = Batch.pack([ModelPass(ids, np.array([tokens // 2]), TOP_K, no_targets(1))])
        measured.append(tuple(1e3 * median_s(partial(r.run, batch), _RUNS) for r in (one, two)))
    header = ["threads", *(f"{tokens} tokens, ms" for tokens in LENGTHS_TOKENS)]
    rows = [
        [str(threads), *(f"{amdahl(one_ms, two_ms, threads):.1f}" for one_ms, two_ms in measured)]
        for threads in CPUS[:-1]
    ]
    return table(header, rows)


if __name__ == "__main__":
    main()
