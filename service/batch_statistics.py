"""What is counted of batches, as plain numbers."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from service.histogram import Histogram

BATCH_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
TOKENS = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192)
SEQUENCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)


@dataclass(frozen=True, slots=True)
class Load:
    """How much a batcher has to do.

    Attributes:
        waiting_tokens: accepted and not answered yet, by lane.
        most_waiting_tokens: above which nothing more is accepted, by lane.
        tokens_per_s: speed of late of all workers together, in large batches; None before one.
        workers: batches computed at the same time.
    """

    waiting_tokens: Mapping[str, int]
    most_waiting_tokens: Mapping[str, int]
    tokens_per_s: float | None
    workers: int


class BatchStatistics:
    """Batches of one model. May be told from several threads, and by several batchers.

    Attributes:
        queue_seconds: of each pass, from its admission to the beginning of its batch.
        compute_seconds: of each batch.
        tokens: of each batch.
        sequences: of each batch.
        slots: in the rows that attention saw, all batches together; those without a token are
            padding.
        failures: batches that could not be computed.
        refusals: passes that were not admitted, by reason.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.queue_seconds = Histogram(BATCH_SECONDS)
        self.compute_seconds = Histogram(BATCH_SECONDS)
        self.tokens = Histogram(TOKENS)
        self.sequences = Histogram(SEQUENCES)
        self.slots = 0
        self.failures = 0
        self.refusals: Counter[str] = Counter()

    def note_batch(
        self, tokens: int, slots: int, queue_s: Iterable[float], compute_s: float
    ) -> None:
        """Count a batch.

        Args:
            tokens: of all its sequences.
            slots: of the rows in which attention saw them.
            queue_s: for how long each sequence has waited.
            compute_s: for how long it was computed.
        """
        with self._lock:
            sequences = 0
            for seconds in queue_s:
                self.queue_seconds.note(seconds)
                sequences += 1
            self.compute_seconds.note(compute_s)
            self.tokens.note(tokens)
            self.sequences.note(sequences)
            self.slots += slots

    def note_failure(self) -> None:
        """Count a batch that failed."""
        with self._lock:
            self.failures += 1

    def note_refusal(self, reason: str) -> None:
        """Count a request that was not admitted."""
        with self._lock:
            self.refusals[reason] += 1
