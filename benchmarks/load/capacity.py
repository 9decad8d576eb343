"""Formula for the number of pods at a request rate, with a simulation that checks the formula.

    .venv-dev/bin/python -m benchmarks.load.capacity

Requests arrive in a Poisson process. Each request goes to a random pod, as with kube-proxy. A pod
has one worker per CPU. It admits requests and forms batches with the service's rules and settings.
The duration of a batch comes from the measurements of benchmarks/load/pod_size.py in
docs/deploy.md. The script writes its table into the same page.
"""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks import generated_block
from benchmarks.comparison.texts import masked_texts
from benchmarks.load import pod_size
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.admission import Throughput
from fillmask.engine.batch_formation import LaneQueue, batch_budget
from fillmask.settings import Settings
from fillmask.tokenization.tokenizer import Tokenizer

NAME = "load/capacity"
CPUS = 2
UTILISATION = 0.7
SPARE = 1
RATES = (100, 1_000, 10_000)
SECONDS = 30.0
SEED = 0
# Fixed cost of a batch. In an earlier measurement of docs/performance.md ("Scaling"), texts of 24
# tokens took 3.92 ms each alone and 2.20 ms each in batches of 8.
PASS_S = 1.96e-3
HEAD = (
    "| requests/s | pods | load | p50 ms | p99 ms | rejected |\n"
    "| --: | --: | --: | --: | --: | --: |"
)


def pods_needed(requests_per_s: float, tokens_per_request: float, pod_tokens_per_s: float) -> int:
    """Return the number of pods by the formula of docs/deploy.md, without the additional pod.

    Args:
        requests_per_s: peak request rate.
        tokens_per_request: mean number of tokens per request.
        pod_tokens_per_s: throughput of a pod that is never idle.
    """
    return math.ceil(requests_per_s * tokens_per_request / (pod_tokens_per_s * UTILISATION))


@dataclass(frozen=True, slots=True)
class Arrival:
    """Arrival of a request with one text.

    Attributes:
        at_s: simulated time of the arrival.
    """

    at_s: float
    tokens: int


@dataclass(slots=True)
class Outcome:
    """Latencies of the accepted requests with the number of rejected requests."""

    latencies_s: list[float] = field(default_factory=list)
    refused: int = 0

    @property
    def refused_share(self) -> float:
        """Share of rejected requests."""
        return self.refused / (self.refused + len(self.latencies_s))

    def percentile_ms(self, percent: int) -> float:
        """Return a percentile of the latencies in milliseconds."""
        return 1e3 * statistics.quantiles(self.latencies_s, n=100)[percent - 1]


class Pod:
    """Simulated pod.

    Args:
        tokens_per_s: throughput of a pod that is never idle.
        cpus: number of workers.
    """

    def __init__(self, tokens_per_s: float, cpus: int, settings: Settings) -> None:
        self._settings = settings
        self._workers = self._idle = cpus
        full = settings.max_batch_tokens
        self._token_s = cpus / tokens_per_s - PASS_S / full
        self._speed = Throughput(full // 2)  # throughput of one worker
        self._speed.record(full, self.batch_s(full))  # the service also measures a full batch first
        self._waiting: LaneQueue[Arrival] = LaneQueue(lambda arrival: arrival.tokens)
        self._accepted_tokens = 0
        self._running: list[tuple[float, int, float, list[Arrival]]] = []
        self._batches = 0

    def serve(self, arrivals: Sequence[Arrival]) -> Outcome:
        """Simulate requests in order of arrival, until all accepted requests have an answer."""
        outcome = Outcome()
        for arrival in arrivals:
            self._run_until(arrival.at_s, outcome)
            if self._has_room(arrival.tokens):
                self._accepted_tokens += arrival.tokens
                self._waiting.extend([arrival], bulk=False)
                self._start(arrival.at_s)
            else:
                outcome.refused += 1
        self._run_until(math.inf, outcome)
        return outcome

    def batch_s(self, tokens: int) -> float:
        """Return the duration of a batch in seconds."""
        return PASS_S + tokens * self._token_s

    def _has_room(self, tokens: int) -> bool:
        speed = self._speed.tokens_per_s
        wait_s = self._accepted_tokens / (speed * self._workers) if speed else 0
        if wait_s > self._settings.max_wait_ms / 1e3:
            return False
        return self._accepted_tokens + tokens <= self._settings.max_waiting_tokens

    def _start(self, now_s: float) -> None:
        while self._idle and self._waiting:
            budget = batch_budget(
                self._accepted_tokens, self._workers, self._settings.max_batch_tokens
            )
            batch = self._waiting.next_batch(budget)
            took_s = self.batch_s(sum(arrival.tokens for arrival in batch))
            self._idle -= 1
            self._batches += 1
            heapq.heappush(self._running, (now_s + took_s, self._batches, took_s, batch))

    def _run_until(self, now_s: float, outcome: Outcome) -> None:
        while self._running and self._running[0][0] <= now_s:
            ended_s, _, took_s, batch = heapq.heappop(self._running)
            tokens = sum(arrival.tokens for arrival in batch)
            self._accepted_tokens -= tokens
            self._speed.record(tokens, took_s)
            outcome.latencies_s += [ended_s - arrival.at_s for arrival in batch]
            self._idle += 1
            self._start(ended_s)


def simulate(
    requests_per_s: float, pods: int, pod_tokens_per_s: float, seconds: float = SECONDS
) -> Outcome:
    """Simulate pods with a fixed seed.

    A random choice of pods splits a Poisson process into independent Poisson processes, so each pod
    has its own arrivals.
    """
    rng = random.Random(SEED)  # noqa: S311 - a simulation, not a secret
    lengths = text_tokens()
    whole = Outcome()
    for _ in range(pods):
        arrivals = list(_arrivals(requests_per_s / pods, seconds, lengths, rng))
        outcome = Pod(pod_tokens_per_s, CPUS, Settings()).serve(arrivals)
        whole.latencies_s += outcome.latencies_s
        whole.refused += outcome.refused
    return whole


def text_tokens() -> list[int]:
    """Return the number of tokens of each text in the measurements of pods."""
    tokenizer = Tokenizer.from_bundle(read_bundle(default_bundle_path()))
    return [len(tokenizer.encode(text).input_ids) for text in masked_texts()]


def pod_tokens_per_s() -> float:
    """Return the measured throughput of a pod that is never idle."""
    return max(size.tokens_per_s for size in pod_size.read_sizes() if size.cpus == CPUS)


def rows(requests_per_s: int) -> Iterator[str]:
    """Yield table rows for too few pods, for the needed pods and for one additional pod."""
    tokens, speed = statistics.mean(text_tokens()), pod_tokens_per_s()
    needed = pods_needed(requests_per_s, tokens, speed)
    for pods in dict.fromkeys((max(1, needed * 2 // 3), needed, needed + SPARE)):
        outcome = simulate(requests_per_s, pods, speed)
        load = requests_per_s * tokens / (pods * speed)
        yield (
            f"| {requests_per_s:,} | {pods} | {load:.0%} | {outcome.percentile_ms(50):.0f} "
            f"| {outcome.percentile_ms(99):.0f} | {outcome.refused_share:.1%} |"
        )


def _arrivals(
    rate: float, seconds: float, lengths: Sequence[int], rng: random.Random
) -> Iterator[Arrival]:
    at_s = rng.expovariate(rate)
    while at_s < seconds:
        yield Arrival(at_s, rng.choice(lengths))
        at_s += rng.expovariate(rate)


def main() -> None:
    """Print the results of the simulation and write them to docs/deploy.md."""
    lines = [HEAD]
    for rate in RATES:
        lines += rows(rate)
        print(*lines[-3:], sep="\n", flush=True)
    generated_block.write(pod_size.PAGE, NAME, "\n".join(lines))


if __name__ == "__main__":
    main()
