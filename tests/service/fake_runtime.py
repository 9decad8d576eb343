"""Fake runtime that returns a text's ids as its fills, so that tests detect swapped results."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import numpy as np

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import BatchOutputs, ModelPass, PassOutputs
from fillmask.observability.metrics import ModelMetrics

BAD_ID = 666


class FatalError(BaseException):
    """Error that ends a worker of the batcher."""


class FakeRuntime:
    """Runtime that fills each mask with the first and the last id of its text."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []  # lengths of the texts of each run
        self.seen: list[int] = []  # the first id of every text computed
        self.go = threading.Event()
        self.go.set()
        self.at_work = threading.Semaphore(0)
        self.fatal = False
        self.stop_after_bad = False
        self.threads = 1

    def run(self, batch: Batch) -> BatchOutputs:
        """Compute the fills from the batch's arrays alone, as the graph does."""
        self.at_work.release()
        assert self.go.wait(10)
        if self.fatal:
            raise FatalError
        starts = np.flatnonzero(batch.positions == 0)
        stops = np.append(starts[1:], batch.tokens)
        self.batches.append((stops - starts).tolist())
        self.seen += batch.input_ids[starts].tolist()
        if BAD_ID in batch.input_ids:
            if self.stop_after_bad:
                self.go.clear()
            raise ValueError("a bad id")
        texts = batch.query_texts.ravel()[batch.mask_slots]
        ends = batch.input_ids[np.stack([starts, stops - 1], axis=1)]
        scores = np.zeros((len(texts), 2), dtype=np.float32)
        no_scores = np.zeros((len(texts), 0), dtype=np.float32)
        return BatchOutputs(ends[texts], scores, no_scores, threads=self.threads)

    async def wait_until_at_work(self) -> None:
        assert await asyncio.to_thread(self.at_work.acquire, timeout=10)


def text(first_id: int, tokens: int = 2, last_id: int = 1) -> ModelPass:
    """Return a pass over a text of `tokens` tokens with one mask."""
    ids = np.full(tokens, last_id, dtype=np.int64)
    ids[0] = first_id
    return ModelPass(ids, np.array([0]), 2, np.zeros((1, 0), dtype=np.int64))


def ends(fills: Iterable[PassOutputs]) -> list[list[int]]:
    """Return the ids of the fills, one list per text."""
    return [fill.top_ids[0].tolist() for fill in fills]


@asynccontextmanager
async def running_batcher(
    fake: FakeRuntime,
    workers: int = 1,
    max_batch_tokens: int = 6,
    max_waiting_tokens: int = 1000,
    max_bulk_tokens: int = 1000,
    max_wait_s: float = 100,
    metrics: ModelMetrics | None = None,
    failures: list[str] | None = None,
    run: Callable[[Batch], BatchOutputs] | None = None,
) -> AsyncIterator[Batcher]:
    """Run a batcher with the fake runtime for at most 20 s.

    Args:
        failures: list that receives the batcher's failures.
        run: function that computes a batch, by default that of the fake runtime.
    """
    batcher = Batcher(
        run or fake.run,
        workers,
        max_batch_tokens,
        max_waiting_tokens,
        max_bulk_tokens,
        max_wait_s,
        ([] if failures is None else failures).append,
        metrics,
    )
    try:
        async with asyncio.timeout(20):
            yield batcher
    finally:
        fake.go.set()
        await batcher.close()
