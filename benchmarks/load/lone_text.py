"""Latency of a text alone over HTTP, beside a plain FastAPI application around the same session.

    .venv-dev/bin/python -m benchmarks.load.lone_text [ROUNDS]

The plain application runs each request on a thread of a pool: tokenizer, session and ranking, with
no queue, no limits and no metrics. Both have uvicorn with h11. One client asks both in turn on a
connection of its own. The script prints the median latency by length, and the ratio of the medians
of each round.
"""

from __future__ import annotations

import http.client
import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.comparison.http.latency import texts_of_length
from benchmarks.comparison.process import HOST, running
from benchmarks.comparison.servers import minimal_app
from benchmarks.comparison.texts import request_body
from benchmarks.running_server import SERVICE
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.tasks.ranking import rank_tokens
from fillmask.tokenization.tokenizer import Tokenizer

LENGTHS_TOKENS = (16, 64, 256)
ROUNDS = 10
REQUESTS = 200
THREADS = 2
OURS = (*SERVICE, f"--threads={THREADS}")
PLAIN = (sys.executable, "-m", "benchmarks.load.lone_text", "serve")


def serve_plain(port: int) -> None:
    """Serve the built-in model in the plain application until a signal."""
    bundle = read_bundle(default_bundle_path())
    tokenizer = Tokenizer.from_bundle(bundle)
    runtime = Runtime(bundle.model_path, THREADS)

    def answer(text: str, top_k: int) -> list[dict[str, Any]]:
        encoded = tokenizer.encode(text)
        graph_top_k = top_k + len(tokenizer.special_token_ids)
        positions = encoded.mask_positions
        batch = Batch.pack(
            [ModelPass(encoded.input_ids, positions, graph_top_k, no_targets(len(positions)))]
        )
        outputs = batch.unpack(runtime.run(batch))
        [[fills]] = rank_tokens(tokenizer, [text], [encoded], outputs, top_k)
        names = ("score", "token", "token_str", "sequence")
        return [{name: getattr(fill, name) for name in names} for fill in fills]

    minimal_app.serve(answer, runs=1, port=port, http="h11")


def p50_ms(connection: http.client.HTTPConnection, body: str) -> float:
    """Return the median latency of one text after the other."""
    latencies_s = []
    connection.close()  # a new connection, because servers close idle ones
    for _ in range(REQUESTS):
        begun_s = time.perf_counter()
        connection.request("POST", "/fill-mask", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        latencies_s.append(time.perf_counter() - begun_s)
        if response.status != 200:
            raise RuntimeError(f"a request got {response.status}: {content[:200]!r}")
    return statistics.median(latencies_s) * 1000


def measure(ports: Sequence[int], rounds: int) -> None:
    """Print the latencies of fillmask and of the plain application."""
    connections = [http.client.HTTPConnection(HOST, port, timeout=10) for port in ports]
    tokenizer = Tokenizer.from_bundle(read_bundle(default_bundle_path()))
    for tokens in LENGTHS_TOKENS:
        body = request_body(texts_of_length(tokenizer, tokens)[0])
        pairs = []
        for number in range(rounds + 1):
            order = (0, 1) if number % 2 else (1, 0)
            found = {index: p50_ms(connections[index], body) for index in order}
            if number:  # the first round is a warm-up
                pairs.append((found[0], found[1]))
        ours_ms, plain_ms = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratios = sorted(ours / plain for ours, plain in pairs)
        print(
            f"{tokens} tokens: {ours_ms:.2f} ms, plain application {plain_ms:.2f} ms, "
            f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
            flush=True,
        )


def main() -> None:
    """Measure, or serve the plain application with the arguments `serve --port PORT`."""
    if sys.argv[1:2] == ["serve"]:
        serve_plain(int(sys.argv[3]))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    cpus = sorted(os.sched_getaffinity(0))
    with (
        running(OURS, cpus, "/health/ready", "lone text") as ours,
        running(PLAIN, cpus, "/health/ready", "lone text, plain application") as plain,
    ):
        measure([ours.port, plain.port], rounds)


if __name__ == "__main__":
    main()
