"""Runtime of the simulation: no graph, drawn times and faults, and answers that reveal questions.

Each log-probability follows from the ids of its text, the position of its mask and the salt of the
model, so an answer to another question, or from another model, differs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from fillmask.arrays import FloatArray, IntArray
from fillmask.bundles.description import Pooling, Task
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs
from tests.service.tiny import SPECIAL, VOCABULARY

if TYPE_CHECKING:
    from tests.simulation.machine.loop import VirtualLoop

LABELS = ("sport", "politics", "science")
_SIZE = len(VOCABULARY)
_ORDINARY = _SIZE - len(SPECIAL)
_KEYS = 9973


def _tables() -> tuple[IntArray, FloatArray]:
    """Return the ids of each row by descending log-probability, and their log-probabilities.

    Row r rotates the ordinary tokens by r. Special tokens come last.
    """
    ids = np.arange(_ORDINARY)
    rows = [
        np.concatenate([(ids + r) % _ORDINARY + len(SPECIAL), np.arange(len(SPECIAL))])
        for r in range(_ORDINARY)
    ]
    log_probs = -1.0 - 0.25 * np.arange(_SIZE)
    return np.stack(rows), log_probs.astype(np.float32)


_TOP_IDS, _LOG_PROBS = _tables()
_RANKS = np.argsort(_TOP_IDS, axis=1)


def answer_key(input_ids: IntArray, position: int, salt: int) -> int:
    """Return the number from which the answer to one question follows."""
    return crc32(input_ids.tobytes()) * 31 + position * 7 + salt * 1_000_003


def log_probs_of(key: int) -> tuple[IntArray, FloatArray]:
    """Return (V,) ids by descending log-probability, and (V,) log-probabilities in this order."""
    return _TOP_IDS[key % _ORDINARY], _LOG_PROBS - np.float32(key % _KEYS * 1e-5)


def label_logits_of(key: int) -> FloatArray:
    """Return (L,) logits of the labels."""
    return np.array([(key >> shift) % 997 / 200 for shift in (0, 5, 10)], dtype=np.float32)


@dataclass
class Speed:
    """Speed and faults of all runtimes of a process, which a simulation changes as it goes.

    Attributes:
        tokens_per_s: tokens per second of one run on one thread.
        base_s: seconds of a run besides its tokens.
        stall_s: seconds by which the next run takes longer.
        failing: probability that a run fails.
        dying: True if the next run of a worker ends it.
        threads: number of threads that a run may use if no other run is in progress.
        running: number of runs in progress.
        deaths: number of workers that have ended.
        alive: runtimes that the service has not closed.
    """

    tokens_per_s: float = 5_000.0
    base_s: float = 0.001
    stall_s: float = 0.0
    failing: float = 0.0
    dying: bool = False
    threads: int = 1
    running: int = 0
    deaths: int = 0
    alive: list["SimulatedRuntime"] = field(default_factory=list)


class WorkerDeathError(BaseException):
    """Error that ends a worker, such as a panic in native code."""


class SimulatedRuntime:
    """Runtime with the interface of `fillmask.engine.runtime.Runtime`.

    Args:
        extra_s: seconds that each run takes longer.

    Attributes:
        closed: whether the service has freed the runtime.
    """

    def __init__(
        self,
        loop: "VirtualLoop",
        random: Random,
        speed: Speed,
        salt: int,
        tasks: tuple[Task, ...],
        *,
        weights_copied: bool = True,
        extra_s: float = 0.0,
    ) -> None:
        self._loop = loop
        self._draw = random.random
        self._speed = speed
        self._salt = salt
        self._extra_s = extra_s
        self._running = 0
        self._stopped = False
        self.tasks = tasks
        self.pooling: Pooling | None = "first" if "text-classification" in tasks else None
        self.weights_copied = weights_copied
        self.closed = False
        speed.alive.append(self)

    def run(self, batch: Batch) -> BatchOutputs:
        """Compute a batch in virtual time."""
        if self.closed:
            self._loop.violate("A batch runs on a closed runtime.")
        speed = self._speed
        self._running += 1
        speed.running += 1
        try:
            threads = speed.threads if speed.running == 1 else 1
            seconds = speed.base_s + batch.tokens / speed.tokens_per_s / (1 + 0.6 * (threads - 1))
            self._work(seconds * (0.8 + 0.4 * self._draw()) + speed.stall_s + self._extra_s)
            # the same in the verification of a new bundle only prevents its use
            if speed.dying and self._loop.greenlets.in_thread():
                speed.dying = False
                speed.deaths += 1
                raise WorkerDeathError
            if self._draw() < speed.failing:
                raise RuntimeError("the graph has failed")
        finally:
            self._running -= 1
            speed.running -= 1
        return BatchOutputs(**_outputs(batch, self._salt), threads=threads)

    def _work(self, seconds: float) -> None:
        """Wait as long as a run takes. A stall holds up one run, and `stop` ends it."""
        self._speed.stall_s = 0.0
        end_s = self._loop.now_s + seconds
        while self._loop.now_s < end_s:
            if self._stopped:
                raise RuntimeError("the run is terminated")
            self._loop.greenlets.sleep(min(1.0, end_s - self._loop.now_s))

    def stop(self) -> None:
        """Make all runs fail."""
        self._stopped = True

    def close(self) -> None:
        """Free the runtime."""
        if self.closed or self._running:
            self._loop.violate("A runtime closes twice or during a run.")
        self.closed = True
        self._speed.alive.remove(self)


def _outputs(batch: Batch, salt: int) -> dict[str, Any]:
    """Return the outputs of the graph, from the arrays of a batch alone."""
    starts = np.flatnonzero(batch.positions == 0)
    texts = np.split(batch.input_ids, starts[1:])
    slots = batch.mask_slots
    owners = batch.query_texts.ravel()[slots].tolist()
    places = batch.query_index.ravel()[slots].tolist()
    keys = [
        answer_key(texts[owner], place - int(starts[owner]), salt)
        for owner, place in zip(owners, places, strict=True)
    ]
    outputs = _fills(batch, keys)
    if len(batch.pooled_slots):
        first = np.searchsorted(batch.pooled_texts, np.arange(len(batch.pooled_lengths)))
        pooled = batch.query_texts.ravel()[batch.pooled_slots[first]].tolist()
        logits = [label_logits_of(answer_key(texts[owner], 0, salt)) for owner in pooled]
        outputs["pooled"] = np.stack(logits)
    return outputs


def _fills(batch: Batch, keys: Sequence[int]) -> dict[str, Any]:
    top_k = int(batch.top_k[0])
    if top_k > _SIZE:
        raise RuntimeError("top_k exceeds the vocabulary")
    rows = np.array([key % _ORDINARY for key in keys], dtype=np.int64)
    shifts = np.array([key % _KEYS * 1e-5 for key in keys], dtype=np.float32)[:, None]
    ranks = np.take_along_axis(_RANKS[rows], batch.target_ids, axis=1)
    return {
        "top_ids": _TOP_IDS[rows, :top_k],
        "top_log_probs": _LOG_PROBS[:top_k] - shifts,
        "target_log_probs": _LOG_PROBS[ranks] - shifts,
    }
