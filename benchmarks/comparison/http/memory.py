"""Memory of the server's process over many requests of random shapes."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from benchmarks.comparison.http.comparison import Plan
from benchmarks.comparison.http.load import load
from benchmarks.comparison.process import running
from benchmarks.comparison.texts import FILE, MASK_TOKEN
from benchmarks.comparison.workspace import CACHE
from fillmask.bundles.bundle import Bundle, read_bundle
from fillmask.tokenization.tokenizer import Tokenizer

REQUESTS = 50_000
WARM_UP_REQUESTS = 2_000
BODIES = 2_000
CONCURRENCY = 8
MAX_MASKS, MAX_TEXTS, MAX_TOP_K = 8, 4, 50
SEED = 0


class Memory(BaseModel):
    """Memory of a server over a number of requests.

    Attributes:
        ready_s: seconds from the start of the process until it is ready.
        peak_rss_bytes: peak memory during the whole measurement.
        samples: pairs of the number of answered requests and the resident bytes, after the warm-up.
    """

    name: str
    ready_s: float
    peak_rss_bytes: int
    samples: list[tuple[int, int]]

    @property
    def growth_bytes(self) -> int:
        """Growth of resident memory from the first sample to the last."""
        return self.samples[-1][1] - self.samples[0][1]


def measure(bundle_path: Path, plan: Plan, requests: int) -> Memory:
    """Sample the memory of a server that answers requests of random shapes."""
    bundle = read_bundle(bundle_path)
    path = CACHE / "random-bodies.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{body}\n" for body in random_bodies(bundle, BODIES)))
    command = (sys.executable, "-m", "fillmask", "--bundle", str(bundle_path))
    samples = []
    with running(command, plan.server_cpus, "/health/ready", "memory") as server:
        answered = 0
        while answered < requests:
            cell = load(
                server.port,
                path,
                concurrency=CONCURRENCY,
                seconds=plan.seconds,
                first=answered % BODIES,
                cpus=plan.client_cpus,
            )
            answered += cell.requests
            if answered >= min(WARM_UP_REQUESTS, requests):
                samples.append((answered, server.rss_bytes()))
        return Memory(
            name=bundle.name,
            ready_s=server.ready_s,
            peak_rss_bytes=server.peak_rss_bytes(),
            samples=samples,
        )


def random_bodies(bundle: Bundle, count: int) -> Iterator[str]:
    """Yield random bodies of one to four texts of any allowed length.

    Short texts are more frequent than long texts.
    """
    rng = random.Random(SEED)  # noqa: S311 - a choice, not a secret
    tokenizer = Tokenizer.from_bundle(bundle)
    words = sorted(set(re.findall(r"[A-Za-z]+", FILE.read_text(encoding="utf-8"))))
    framing = len(tokenizer.encode("").input_ids)
    tokens = {word: len(tokenizer.encode(word).input_ids) - framing for word in words}
    for _ in range(count):
        texts = []
        for _ in range(rng.choice((1, 1, 1, rng.randint(2, MAX_TEXTS)))):
            room = round((bundle.max_tokens - framing - MAX_MASKS) * rng.random() ** 2)
            parts = [MASK_TOKEN] * rng.randint(1, MAX_MASKS)
            while room > 0:
                word = rng.choice(words)
                room -= tokens[word]
                if room >= 0:
                    parts.append(word)
            rng.shuffle(parts)
            texts.append(" ".join(parts))
        yield json.dumps({"inputs": texts, "parameters": {"top_k": rng.randint(1, MAX_TOP_K)}})
