"""Scheduler that forms batches of model passes and computes them on worker threads."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from fillmask.engine.admission import Admission, QueueLoad
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs, ModelPass, PassOutputs
from fillmask.engine.request_queue import (
    LaneQueue,
    PendingRequest,
    QueuedPass,
    RequestParts,
    batch_budget,
    exceeds_interactive_lane,
)
from fillmask.errors import SHUTTING_DOWN, NotReadyError, safe_traceback
from fillmask.observability.request_context import Tracer, current_times

if TYPE_CHECKING:  # an import of prometheus-client takes 50 ms, and the library has no metrics
    from fillmask.observability.metrics import ModelMetrics

_log = logging.getLogger(__name__)


class Batcher:
    """A queue of model passes with worker threads that compute the passes in batches.

    An idle worker immediately takes the oldest passes of one lane, up to the token budget and to an
    equal share of all accepted tokens. Workers never delay a batch to fill it. The queue does not
    sort passes by length, because long and short texts share attention rows with little padding
    (`RowPacking`).

    Requests of many passes wait in the bulk lane, so that they do not delay interactive requests.
    The caller creates and closes the batcher on the event loop that calls `submit`.

    Args:
        run: function that computes a batch. Several workers call the function at the same time.
        max_waiting_tokens: limit of `Admission`, as are the next two arguments.
        on_failure: function that receives an error message on the event loop after a worker thread
            has failed.

    Attributes:
        last_batch_s: end of the last batch or creation of the batcher, in seconds of the monotonic
            clock.
    """

    def __init__(
        self,
        run: Callable[[Batch], BatchOutputs],
        workers: int,
        max_batch_tokens: int,
        max_waiting_tokens: int,
        max_bulk_tokens: int,
        max_wait_s: float,
        on_failure: Callable[[str], None],
        metrics: "ModelMetrics | None" = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._run = run
        self._max_batch_tokens = max_batch_tokens
        self._on_failure = on_failure
        self._metrics = metrics
        self._tracer = tracer
        self._loop = asyncio.get_running_loop()
        # guards all attributes below
        self._lock = threading.Lock()
        # idle workers. The last worker in the list became idle last and has the warmest CPU caches.
        self._idle: list[threading.Condition] = []
        self._queue: LaneQueue[QueuedPass] = LaneQueue(lambda queued: queued.model_pass.tokens)
        self._admission = Admission(
            workers, max_batch_tokens, max_waiting_tokens, max_bulk_tokens, max_wait_s, metrics
        )
        self._closing = False
        self._failure: str | None = None
        self.last_batch_s = time.monotonic()
        self._workers = [
            threading.Thread(target=self._work, name=f"fillmask-worker-{i}", daemon=True)
            for i in range(workers)
        ]
        for worker in self._workers:
            worker.start()

    @property
    def accepted_tokens(self) -> int:
        """Number of waiting and running tokens in both lanes."""
        with self._lock:
            return self._admission.tokens

    def record_throughput(self, tokens: int, seconds: float) -> None:
        """Record a batch of the warm-up in the recent throughput."""
        self._admission.throughput.record(tokens, seconds)

    async def submit(
        self,
        passes: Sequence[ModelPass],
        *,
        bulk: bool = False,
        parts: RequestParts | None = None,
    ) -> list[PassOutputs]:
        """Compute the passes of one request, or of a part of it, and return their outputs.

        The queue accepts or rejects the passes together. A cancellation removes them from it.

        Args:
            bulk: whether the passes join the bulk lane, as requests of many tokens always do.
            parts: state of the request if it has other parts.

        Raises:
            FillMaskError: the queue is full, or too small for the passes (`Admission.accept`).
            NotReadyError: the batcher is closing, or a worker has failed.
            Exception: `run` raises this error for a batch with only one of the passes.
        """
        assert passes, "a request needs at least one pass"  # noqa: S101
        tokens = sum(model_pass.tokens for model_pass in passes)
        own = parts is None
        parts = parts or RequestParts()
        bulk |= parts.bulk or exceeds_interactive_lane(tokens, self._max_batch_tokens)
        span = None if self._tracer is None else self._tracer.current_context()
        request = PendingRequest(self._loop.create_future(), len(passes), span)
        queued = [QueuedPass(one, request, i, bulk, parts) for i, one in enumerate(passes)]
        with self._lock:
            self._raise_if_stopped()
            # the later parts of a request go before the requests that came after it
            number = parts.number
            before = (lambda other: other.parts.number > number) if number else None
            self._admission.accept(tokens, bulk=bulk, parts=parts)
            self._queue.extend(queued, bulk=bulk, before=before)
            self._wake(len(queued))
        try:
            outputs = await request.future
        except BaseException:  # after a cancellation or the failure of one pass
            self._discard(request)
            raise
        finally:
            if own:
                self.forget(parts)
        if (times := current_times()) is not None:
            times.add("queue", request.arrived_s, request.started_s)
            times.add("inference", request.started_s, request.ended_s)
        return outputs

    def parts_of(self, tokens: int, expected_tokens: int = 0) -> RequestParts:
        """Return the state of a request with several parts, which the caller must `forget`.

        Args:
            expected_tokens: number of tokens in all its passes.
        """
        bulk = exceeds_interactive_lane(tokens, self._max_batch_tokens)
        return RequestParts(bulk, expected_tokens=expected_tokens)

    def forget(self, parts: RequestParts) -> None:
        """End a request with several parts. The queue then expects no more of them."""
        if parts.number:
            with self._lock:
                self._admission.forget(parts)

    @property
    def load(self) -> QueueLoad:
        return self._admission.load

    def raise_if_overloaded(self, *, bulk: bool = False) -> None:
        """Reject a request early, before its size is known, with the errors of `submit`."""
        self._raise_if_stopped()
        self._admission.check(1, bulk=bulk, parts=RequestParts())

    async def close(self) -> None:
        """Reject new requests, compute the accepted requests and stop the workers."""
        with self._lock:
            self._closing = True
            self._wake(len(self._workers))
        for worker in self._workers:
            await asyncio.to_thread(worker.join)

    def _raise_if_stopped(self) -> None:
        if self._failure is not None:
            raise NotReadyError(self._failure)
        if self._closing:
            raise NotReadyError(SHUTTING_DOWN)

    def _discard(self, request: PendingRequest) -> None:
        with self._lock:
            self._release_tokens(self._queue.remove(lambda queued: queued.request is request))

    def _work(self) -> None:
        batch: list[QueuedPass] = []
        try:
            while batch := self._next_batch():
                try:
                    results = self._compute(batch)
                finally:
                    self._release(batch)
                self._deliver(batch, results)
        except BaseException as error:  # noqa: BLE001 - any error ends the thread
            self._fail(batch, error)

    def _wake(self, workers: int) -> None:
        for _ in range(min(workers, len(self._idle))):
            self._idle.pop().notify()

    def _next_batch(self) -> list[QueuedPass]:
        """Wait for the next batch and return it. An empty batch ends the worker."""
        with self._lock:
            while not self._queue and not self._closing:
                woken = threading.Condition(self._lock)
                self._idle.append(woken)
                woken.wait()
            return self._queue.next_batch(
                batch_budget(self._admission.tokens, len(self._workers), self._max_batch_tokens),
                self._admission.bulk_share,
            )

    def _compute(self, queued: Sequence[QueuedPass]) -> list[PassOutputs | Exception]:
        started_s = time.perf_counter()
        try:
            batch = Batch.pack([one.model_pass for one in queued])
            outputs = self._run(batch)
            results: list[PassOutputs | Exception] = [*batch.unpack(outputs)]
        except Exception as error:  # noqa: BLE001 - the caller receives any error
            if self._metrics is not None:
                self._metrics.record_failure()
            if len(queued) == 1:
                return [error]
            _log.warning("a batch has failed, so each pass runs alone:\n%s", safe_traceback(error))
            return [result for one in queued for result in self._compute([one])]
        ended_s = time.perf_counter()
        for request in {one.request for one in queued}:
            request.record_run(started_s, ended_s)
        with self._lock:
            self._admission.record(
                batch.tokens, ended_s - started_s, outputs.threads, bulk=queued[0].bulk
            )
        if self._metrics is not None:
            self._metrics.record_batch(
                batch.tokens,
                batch.slots,
                [started_s - one.request.arrived_s for one in queued],
                ended_s - started_s,
                outputs.threads,
            )
        if self._tracer is not None:
            requests = {one.request: None for one in queued}  # without duplicates, in order
            self._tracer.record_batch(
                [(request.span, request.arrived_s) for request in requests],
                started_s,
                ended_s,
                {"fillmask.batch.tokens": batch.tokens, "fillmask.batch.sequences": len(queued)},
            )
        return results

    def _release(self, batch: Sequence[QueuedPass]) -> None:
        with self._lock:
            self._release_tokens(batch)
            self.last_batch_s = time.monotonic()

    def _release_tokens(self, passes: Iterable[QueuedPass]) -> None:
        for queued in passes:
            self._admission.release(queued.model_pass.tokens, bulk=queued.bulk, parts=queued.parts)

    def _deliver(
        self, batch: Sequence[QueuedPass], results: Sequence[PassOutputs | Exception]
    ) -> None:
        def set_results() -> None:
            for queued, result in zip(batch, results, strict=True):
                queued.request.set_result(queued.index, result)

        self._loop.call_soon_threadsafe(set_results)

    def _fail(self, batch: list[QueuedPass], error: BaseException) -> None:
        """Fail all pending requests, because a worker may have left an invalid state."""
        _log.critical(
            "a worker has failed, so the process stops; restart the service:\n%s",
            safe_traceback(error),
        )
        failure = "The service has failed; restart it."
        with self._lock:
            self._failure = failure
            self._closing = True
            waiting = self._queue.remove(lambda _: True)
            # without the running batches, because each worker releases its own
            self._release_tokens(waiting)
            self._wake(len(self._workers))
        self._loop.call_soon_threadsafe(self._on_failure, failure)
        failed = [*batch, *waiting]
        self._deliver(failed, [NotReadyError(failure)] * len(failed))
