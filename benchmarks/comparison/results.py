"""Results of comparisons, stored as JSON in the cache after every round."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel

from benchmarks.comparison.workspace import CACHE


class Kept(BaseModel):
    """Results in a file of the cache, whose name is FILE."""

    FILE: ClassVar[str]

    @classmethod
    def path(cls) -> Path:
        """Return the file of the latest run."""
        return CACHE / cls.FILE

    @classmethod
    def read(cls) -> Self | None:
        """The latest run, if there was one."""
        return cls.model_validate_json(cls.path().read_text()) if cls.path().is_file() else None

    def write(self) -> None:
        """Keep it."""
        self.path().parent.mkdir(parents=True, exist_ok=True)
        self.path().write_text(self.model_dump_json(indent=2))


class Cell(BaseModel):
    """One server under one load.

    Attributes:
        requests: answered in the time measured.
        requests_per_s: over the whole time.
        p50_ms: median latency at the client.
        p99_ms: 99th percentile of the same.
        client_cpu_us: the load generator's own CPU time for a request.
    """

    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    client_cpu_us: float


class Visit(BaseModel):
    """One server in one round.

    Attributes:
        ready_s: from the start of the process until it says that it can answer.
        peak_rss_bytes: the most memory its processes had, added up.
        agreement: share of masks with transformers' best token.
        cells: by concurrency.
    """

    ready_s: float
    peak_rss_bytes: int
    agreement: float
    cells: dict[int, Cell]


class SizeResults(BaseModel):
    """Everything on one model size.

    Attributes:
        parameters: of the model, in words.
        texts: how many.
        mean_tokens: of a text.
        mean_masks: of a text.
        operations_per_text: see `operations`.
        chosen: by contender, the setting that was fastest in a trial, and what was tried.
        visits: by contender, one a round.
        in_process: by variant, texts/s of each round.
        in_process_chosen: by variant, the setting that was fastest in a trial.
        operator_us: by operator of the served graph in int8, microseconds a text on one thread.
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
    operator_us: dict[str, float] = {}


class Peak(BaseModel):
    """What the machine's matrix products reach, in 1e9 operations/s of all CPUs used."""

    int8_gops: float
    fp32_gops: float

    def higher(self, other: Peak) -> Peak:
        """The higher of each."""
        return Peak(
            int8_gops=max(self.int8_gops, other.int8_gops),
            fp32_gops=max(self.fp32_gops, other.fp32_gops),
        )


class Comparison(Kept):
    """A run of the comparison.

    Attributes:
        date: when it began.
        machine: lines that describe it.
        cpus: how many servers and in-process variants may use.
        seconds: of each measurement.
        rounds: of each measurement.
        null_server: the load generator against a server that does nothing, by concurrency.
        peak: the highest of all rounds.
        sizes: by name of the model size.
        installed_bytes: by kind of environment.
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
