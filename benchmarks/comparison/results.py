"""Results of comparisons, stored as JSON in the cache after every round."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel

from benchmarks.comparison.workspace import CACHE

FILE = CACHE / "comparison.json"


class Cell(BaseModel):
    """Figures of one server at one concurrency.

    Attributes:
        requests: number of answered requests.
        p50_ms: median latency at the client.
        p99_ms: 99th percentile of the latency at the client.
        client_cpu_us: CPU time of the load generator per request.
    """

    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    client_cpu_us: float

    @classmethod
    def median(cls, cells: Sequence[Cell]) -> Self:
        """Return the sum of the requests and the medians of the other figures over the rounds."""
        figures = {
            name: statistics.median(getattr(cell, name) for cell in cells)
            for name in ("requests_per_s", "p50_ms", "p99_ms", "client_cpu_us")
        }
        return cls(requests=sum(cell.requests for cell in cells), **figures)


class Visit(BaseModel):
    """Figures of one server in one round.

    Attributes:
        ready_s: seconds from the start of the process until it is ready.
        peak_rss_bytes: sum of the peak memory of all processes.
        agreement: share of masks with transformers' best token.
        cells: figures by concurrency.
    """

    ready_s: float
    peak_rss_bytes: int
    agreement: float
    cells: dict[int, Cell]


class SizeResults(BaseModel):
    """Results of one model size.

    Attributes:
        parameters: description of the model's sizes.
        mean_tokens: mean number of tokens per text.
        mean_masks: mean number of masks per text.
        chosen: fastest setting in the trial by contender.
        visits: figures of each round by contender.
        in_process: texts/s of each round by variant.
        latency_ms: p50 of single texts in each round, by contender, setting and length in tokens.
    """

    parameters: str
    texts: int
    mean_tokens: float
    mean_masks: float
    chosen: dict[str, str] = {}
    visits: dict[str, list[Visit]] = {}
    in_process: dict[str, list[float]] = {}
    latency_ms: dict[str, dict[str, dict[int, list[float]]]] = {}


class Comparison(BaseModel):
    """Results of a run of the comparison.

    Attributes:
        date: date of the start.
        machine: description of the machine, line by line.
        cpus: number of CPUs of servers and in-process variants.
        seconds: duration of each measurement.
        rounds: number of finished rounds.
        sizes: results by model size.
        installed_bytes: installed size by contender.
    """

    date: str
    machine: list[str]
    cpus: int
    seconds: float
    rounds: int = 0
    sizes: dict[str, SizeResults] = {}
    installed_bytes: dict[str, int] = {}

    @classmethod
    def read(cls) -> Self:
        """Read the results of the latest run."""
        return cls.model_validate_json(FILE.read_text())

    def write(self) -> None:
        """Write the results to the cache."""
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(self.model_dump_json(indent=2))
