"""Soak test of memory and responses with all kinds of requests.

    .venv-dev/bin/python -m benchmarks.load.soak [MINUTES]

Several clients send fills, targets, whole words, joint fills, windows, scores and invalid requests.
In 5 % of the requests, the client disconnects if it has no response after 10 ms.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from benchmarks.comparison.process import HOST, Server, running
from benchmarks.comparison.texts import masked_texts

CLIENTS = 6
SAMPLE_S = 10.0
WARM_SHARE = 0.25  # share of the time for warm-up, in which the process sees all kinds of requests
ALLOWED_GROWTH = 1.05

Make = Callable[[random.Random, list[str]], tuple[str, dict[str, Any]]]

TARGETS = ["tea", "photosynthesis", "New York", "a cat"]


def _fill(inputs: Sequence[str], **parameters: Any) -> tuple[str, dict[str, Any]]:
    return "/fill-mask", {"inputs": inputs, "parameters": parameters}


KINDS: dict[str, Make] = {
    "fills": lambda draw, texts: _fill(draw.choices(texts, k=draw.randrange(1, 9))),
    "targets": lambda draw, texts: _fill(draw.choice(texts), targets=draw.sample(TARGETS, 3)),
    "words": lambda draw, texts: _fill(draw.choice(texts), granularity="word"),
    "joint": lambda draw, texts: _fill("[MASK] " + draw.choice(texts), strategy="joint"),
    "windows": lambda draw, texts: _fill(
        " ".join(draw.choices(texts, k=20)), on_long_text="window", top_k=2
    ),
    "scores": lambda draw, texts: (
        "/score",
        {"inputs": draw.choice(texts).replace("[MASK]", "it")},
    ),
    "mistakes": lambda draw, texts: _fill(
        draw.choice(["no mask", "", draw.choices(texts, k=65)]),
    ),
}


async def ask(url: str, end_s: float, seed: int, answers: Counter[tuple[str, int]]) -> None:
    """Send random requests as one client, which waits at most 10 ms for 5 % of the responses."""
    draw = random.Random(seed)  # noqa: S311 - a choice, not a secret
    texts = [text for text in masked_texts() if len(text) < 600]
    async with httpx.AsyncClient(timeout=60) as client:
        while time.monotonic() < end_s:
            kind = draw.choice(list(KINDS))
            path, body = KINDS[kind](draw, texts)
            content = json.dumps(body)
            headers = {"Content-Type": "application/json"}
            request = client.post(f"{url}{path}", content=content, headers=headers)
            if draw.random() < 0.05:
                try:
                    await asyncio.wait_for(request, 0.01)
                except TimeoutError:
                    answers[kind, 0] += 1
                continue
            answers[kind, (await request).status_code] += 1


async def watch(server: Server, end_s: float) -> list[float]:
    """Sample the server's memory in MB at a fixed interval."""
    samples = []
    while time.monotonic() < end_s:
        await asyncio.sleep(SAMPLE_S)
        samples.append(server.rss_bytes() / 1e6)
    return samples


async def soak(server: Server, seconds: float) -> tuple[Counter[tuple[str, int]], list[float]]:
    """Run all clients.

    Returns:
        The number of responses by kind of request and status. Requests of clients that disconnected
        have status 0.
        Samples of the memory in MB.
    """
    end_s = time.monotonic() + seconds
    answers: Counter[tuple[str, int]] = Counter()
    async with asyncio.TaskGroup() as group:
        for seed in range(CLIENTS):
            group.create_task(ask(f"http://{HOST}:{server.port}", end_s, seed, answers))
        watching = group.create_task(watch(server, end_s))
    return answers, watching.result()


def main() -> None:
    """Print the responses and the memory.

    The function fails on an unexpected status or on memory growth of more than 5 %.
    """
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 20
    cpus = sorted(os.sched_getaffinity(0))
    with running([sys.executable, "-m", "fillmask"], cpus, "/health/ready", "soak") as server:
        answers, samples = asyncio.run(soak(server, 60 * minutes))
    statuses = sorted({status for _, status in answers})
    print(f"| request | {' | '.join(str(status or 'disconnected') for status in statuses)} |")
    print("|---|" + "--:|" * len(statuses))
    for kind in KINDS:
        print(f"| {kind} | {' | '.join(str(answers[kind, status]) for status in statuses)} |")
    warm = samples[int(WARM_SHARE * len(samples)) :]
    third = max(1, len(warm) // 3)
    early, late = (sum(part) / len(part) for part in (warm[:third], warm[-third:]))
    print(f"\nmemory: {early:.0f} MB early, {late:.0f} MB late, {max(samples):.0f} MB at the peak")
    bad = [
        key for key in answers if key[1] not in {0, 200, 429, 422 if key[0] == "mistakes" else 200}
    ]
    if bad:
        raise SystemExit(f"all responses must have an expected status (got {bad})")
    if late > early * ALLOWED_GROWTH:
        raise SystemExit(
            f"memory must grow by at most {ALLOWED_GROWTH - 1:.0%} (got {late / early - 1:.0%})"
        )


if __name__ == "__main__":
    main()
