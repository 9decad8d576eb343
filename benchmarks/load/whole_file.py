"""Throughput of whole files with `fillmask`, compared with the runtime alone and with HTTP.

    .venv-dev/bin/python -m benchmarks.load.whole_file [ROWS [ROUNDS]]

The rows are texts of the comparison (comparison/TEXTS.md) with masks at random words. All
measurements use the built-in model on all CPUs. Each round measures in turn:
- the runtime alone, with full batches of tokenized texts,
- `fillmask --input --output` as a process, with and without its start time,
- the service with wrk and 32 connections.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

from benchmarks.comparison.http.load import check_wrk, load
from benchmarks.comparison.process import environment, running
from benchmarks.comparison.texts import FILE, TOP_K, mask_words, request_body
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.settings import Settings
from fillmask.tokenization.tokenizer import Tokenizer

ROWS, ROUNDS = 20_000, 3
CONNECTIONS = 32
COMMAND = [sys.executable, "-m", "fillmask.cli"]
ALONE, WITH_START, WITHOUT_START, HTTP = (
    "the runtime alone, ideal batches",
    "`fillmask`, a process from start to end",
    "`fillmask`, without its start",
    f"HTTP, {CONNECTIONS} connections",
)


def main() -> None:
    """Print the throughput of each measurement."""
    rows, rounds = (
        int(sys.argv[i]) if len(sys.argv) > i else default
        for i, default in ((1, ROWS), (2, ROUNDS))
    )
    check_wrk()
    texts = list(islice(masked_texts(), rows))
    speeds: dict[str, list[float]] = {way: [] for way in (ALONE, WITH_START, WITHOUT_START, HTTP)}
    with tempfile.TemporaryDirectory() as directory:
        source, bodies = Path(directory, "texts.jsonl"), Path(directory, "bodies.txt")
        source.write_text("".join(f"{json.dumps({'inputs': text})}\n" for text in texts))
        bodies.write_text("".join(f"{request_body(text)}\n" for text in texts))
        alone = RuntimeAlone(texts)
        for _ in range(rounds):
            alone_s = alone.seconds()
            start_s = seconds_of(["[MASK]"])
            files = ["--input", str(source), "--output", str(source.with_name("fills.jsonl"))]
            command_s = seconds_of([*files, "--overwrite", "--top-k", str(TOP_K)])
            speeds[ALONE].append(rows / alone_s)
            speeds[WITH_START].append(rows / command_s)
            speeds[WITHOUT_START].append(rows / (command_s - start_s))
            speeds[HTTP].append(texts_per_s_over_http(bodies, seconds=max(1.0, alone_s)))
    print(f"| {rows} rows | texts/s | of the runtime alone |\n|---|--:|--:|")
    for way, measured in speeds.items():
        ratios = [ours / most for ours, most in zip(measured, speeds[ALONE], strict=True)]
        print(f"| {way} | {statistics.median(measured):.0f} | {statistics.median(ratios):.2f} |")


def masked_texts() -> Iterator[str]:
    """Yield an endless, reproducible sequence of texts with one to three masks."""
    tokenizer, most = (
        Tokenizer.from_bundle(read_bundle(default_bundle_path())),
        Settings().max_batch_tokens,
    )
    rng = random.Random(0)  # noqa: S311 - a choice, not a secret
    for line in cycle(FILE.read_text(encoding="utf-8").splitlines()):
        text = mask_words(line, rng.choices((1, 2, 3), (70, 20, 10))[0], rng)
        if len(tokenizer.encode(text).input_ids) <= most:
            yield text


class RuntimeAlone:
    """Runtime without the service, as an upper limit of the throughput.

    Args:
        texts: texts with masks.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        bundle, self._settings = read_bundle(default_bundle_path()), Settings()
        self._runtime = Runtime(bundle.model_path)
        tokenizer = Tokenizer.from_bundle(bundle)
        asked = TOP_K + len(tokenizer.special_token_ids)
        encoded = map(tokenizer.encode, texts)
        self._batches = list(
            self._full_batches(
                ModelPass(
                    text.input_ids, text.mask_positions, asked, no_targets(len(text.mask_spans))
                )
                for text in encoded
            )
        )

    def seconds(self) -> float:
        """Return the duration of computing all texts once, in seconds."""
        with ThreadPoolExecutor(self._settings.threads) as pool:
            started_s = time.perf_counter()
            for _ in pool.map(self._compute, self._batches):
                pass
            return time.perf_counter() - started_s

    def _compute(self, requests: Sequence[ModelPass]) -> None:
        self._runtime.run(Batch.pack(requests))

    def _full_batches(self, requests: Iterator[ModelPass]) -> Iterator[list[ModelPass]]:
        batch: list[ModelPass] = []
        tokens = 0
        for request in requests:
            tokens += request.tokens
            if batch and tokens > self._settings.max_batch_tokens:
                yield batch
                batch, tokens = [], request.tokens
            batch.append(request)
        yield batch


def seconds_of(arguments: Sequence[str]) -> float:
    """Return the duration of a `fillmask` process in seconds."""
    started_s = time.perf_counter()
    subprocess.run([*COMMAND, *arguments], env=environment(), capture_output=True, check=True)
    return time.perf_counter() - started_s


def texts_per_s_over_http(bodies: Path, seconds: float) -> float:
    """Return the texts/s of the service with 32 connections from the same CPUs."""
    cpus = sorted(os.sched_getaffinity(0))
    service = [sys.executable, "-m", "fillmask"]
    with running(service, cpus, "/health/ready", "whole-file") as server:
        cell = load(
            server.port,
            bodies,
            concurrency=CONNECTIONS,
            seconds=seconds,
            first=0,
            cpus=cpus,
        )
    return cell.requests_per_s


if __name__ == "__main__":
    main()
