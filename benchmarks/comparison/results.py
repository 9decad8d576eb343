"""Results of comparisons, stored as JSON in the cache after every round."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel

from benchmarks.comparison.workspace import CACHE


class Kept(BaseModel):
    """Results in a file of the cache.

    Attributes:
        FILE: name of the file in CACHE, which each subclass sets.
    """

    FILE: ClassVar[str]

    @classmethod
    def path(cls) -> Path:
        """Return the path of the file."""
        return CACHE / cls.FILE

    @classmethod
    def read(cls) -> Self | None:
        """Read the results of the latest run.

        Returns:
            None if no run has written the file.
        """
        return cls.model_validate_json(cls.path().read_text()) if cls.path().is_file() else None

    def write(self) -> None:
        """Write the results to the file."""
        self.path().parent.mkdir(parents=True, exist_ok=True)
        self.path().write_text(self.model_dump_json(indent=2))


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


class Visit(BaseModel):
    """Figures of one server in one round.

    Attributes:
        ready_s: seconds from the start of the process until it is ready.
        peak_rss_bytes: sum of the peak memory of all processes.
        agreement: share of masks with transformers' best token, or of texts with transformers' best
            label.
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
        operations_per_text: mean number of operations per text (`operations`).
        chosen: fastest setting in the trial by contender.
        visits: figures of each round by contender.
        in_process: texts/s of each round by variant.
        in_process_chosen: fastest setting in the trial by variant.
        latency_ms: p50 of single texts in each round, by contender, setting and length in tokens.
        operator_us: microseconds per text by operator of the int8 graph, on one thread.
    """

    parameters: str
    texts: int
    mean_tokens: float
    mean_masks: float
    operations_per_text: float
    chosen: dict[str, str] = {}
    visits: dict[str, list[Visit]] = {}
    in_process: dict[str, list[float]] = {}
    in_process_chosen: dict[str, str] = {}
    latency_ms: dict[str, dict[str, dict[int, list[float]]]] = {}
    operator_us: dict[str, float] = {}


class Peak(BaseModel):
    """Peak rate of matrix products on all used CPUs, in 1e9 operations/s."""

    int8_gops: float
    fp32_gops: float

    def higher(self, other: Peak) -> Peak:
        """Return the higher of two peaks for each precision."""
        return Peak(
            int8_gops=max(self.int8_gops, other.int8_gops),
            fp32_gops=max(self.fp32_gops, other.fp32_gops),
        )


class Comparison(Kept):
    """Results of a run of the comparison.

    Attributes:
        date: date of the start.
        machine: description of the machine, line by line.
        cpus: number of CPUs of servers and in-process variants.
        seconds: duration of each measurement.
        rounds: number of rounds of each measurement.
        null_server: figures of a server that computes nothing, by concurrency.
        peak: peak rate of matrix products over all rounds.
        sizes: results by model size.
        installed_bytes: installed size by kind of installation.
    """

    FILE = "comparison.json"

    date: str
    machine: list[str]
    cpus: int
    seconds: float
    rounds: int
    null_server: dict[int, Cell] = {}
    peak: Peak = Peak(int8_gops=0, fp32_gops=0)
    sizes: dict[str, SizeResults] = {}
    installed_bytes: dict[str, int] = {}
