"""Admit or refuse at once, form batches by token budget, run them on worker threads."""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence

from service.engine.admission import Admission
from service.engine.batch import Batch, BatchOutputs, ModelPass, PassOutputs
from service.engine.queue import LaneQueue, PendingRequest, QueuedPass
from service.errors import NotReadyError, safe_traceback
from service.observability.statistics import BatchStatistics, QueueLoad
from service.observability.tracing import Tracer

_log = logging.getLogger(__name__)

# a request of more tokens than fit so many batches waits while others do
INTERACTIVE_BATCHES = 8


class Batcher:
    """A first-in-first-out queue of requests before worker threads that run batches.

    A worker that becomes free takes at once what has waited longest, up to its equal share of the
    tokens that wait or run, and to the token budget: no batch is held back for company, no worker
    is idle while another has a crowd, and nobody waits for a text that came later. A request above
    share or budget runs alone. Lengths are not sorted: the graph packs long and short texts
    together almost without loss (`packing`). Requests of many passes wait in a lane of their
    own, with a limit of its own, so that they hold up nobody else. Create and close it on the event
    loop that submits.

    Args:
        run: computes a batch; called from the workers, several at a time.
        workers: threads.
        max_batch_tokens: budget of a batch.
        max_waiting_tokens: most tokens accepted and not answered yet, waiting or running.
        max_bulk_tokens: the same for those that can wait.
        max_wait_s: nothing more is accepted while the tokens that cannot wait would take longer
            than this at the speed of late.
        on_failure: called on the event loop with a sentence when a worker has died and nothing
            can be computed any more.
        statistics: told of each batch; those of this batcher alone by default.
        spans: told of each batch as well, where requests are traced.
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
        statistics: BatchStatistics | None = None,
        spans: Tracer | None = None,
    ) -> None:
        self._run = run
        self._max_batch_tokens = max_batch_tokens
        self._on_failure = on_failure
        self._statistics = statistics or BatchStatistics()
        self._spans = spans
        self._loop = asyncio.get_running_loop()
        # guards all below
        self._lock = threading.Lock()
        # who has nothing to do, the last to have worked last: its CPU's caches are the warmest
        self._idle: list[threading.Condition] = []
        self._waiting: LaneQueue[QueuedPass] = LaneQueue(lambda entry: entry.request.tokens)
        self._admission = Admission(
            workers,
            max_batch_tokens,
            max_waiting_tokens,
            max_bulk_tokens,
            max_wait_s,
            self._statistics,
        )
        self._closing = False
        self._failure: str | None = None
        self._answered_s = time.monotonic()
        self._workers = [
            threading.Thread(target=self._work, name=f"fillmask-worker-{i}", daemon=True)
            for i in range(workers)
        ]
        for worker in self._workers:
            worker.start()

    @property
    def accepted_tokens(self) -> int:
        """Of all requests that wait or are computed."""
        with self._lock:
            return self._admission.tokens

    def note_speed(self, tokens: int, seconds: float) -> None:
        """What is known of a worker's speed before the first batch."""
        self._admission.speed.note(tokens, seconds)

    async def submit(
        self, requests: Sequence[ModelPass], *, bulk: bool = False
    ) -> list[PassOutputs]:
        """Answer all the requests, in their order; they are admitted together or not at all.

        A caller that is cancelled is taken out of the queue.

        Args:
            requests: at least one.
            bulk: whether they are a part of many passes, and wait while others do; so do they
                if they are many themselves.

        Raises:
            OverloadedError: too much waits already.
            InvalidRequestError: more tokens than are ever accepted.
            NotReadyError: the batcher is closing, or a worker has died.
            Exception: whatever `run` raised for one of these requests alone.
        """
        assert requests, "nobody would ever be told that nothing is done"  # noqa: S101
        tokens = sum(request.tokens for request in requests)
        bulk |= tokens > INTERACTIVE_BATCHES * self._max_batch_tokens
        span = None if self._spans is None else self._spans.current_context()
        submission = PendingRequest(self._loop.create_future(), len(requests), span)
        entries = [QueuedPass(request, submission, i, bulk) for i, request in enumerate(requests)]
        with self._lock:
            self._refuse_at_the_end()
            self._admission.accept(tokens, bulk=bulk)
            self._waiting.extend(entries, bulk=bulk)
            self._wake(len(entries))
        try:
            return await submission.future
        except BaseException:  # the caller was cancelled, or one request failed: drop the rest
            self._forget(submission)
            raise

    @property
    def last_batch_s(self) -> float:
        """When the last batch was done, by the monotonic clock."""
        return self._answered_s

    @property
    def load(self) -> QueueLoad:
        """How much there is to do, by lane: `interactive` is computed before `bulk`."""
        return self._admission.load

    @property
    def estimated_wait_s(self) -> float:
        """How long what is accepted will take, but for what can wait; 0 while nothing is known."""
        return self._admission.estimated_wait_s

    def raise_if_overloaded(self, *, bulk: bool = False) -> None:
        """Refuse a request while nothing is known of it; whether it is accepted `submit` decides.

        Raises:
            OverloadedError: too much waits already.
            NotReadyError: the batcher is closing, or a worker has died.
        """
        self._refuse_at_the_end()
        self._admission.check(1, bulk=bulk)

    def retry_after_s(self, ahead: int = 0) -> int | None:
        """Refuse a request of which nothing is known, if there is no room for it.

        Args:
            ahead: requests that have come before it and have no answer yet. Some of them may still
                be read, and will be submitted first: they count as of the usual length.

        Returns:
            Whole seconds after which there should be room; None where there is.
        """
        return self._admission.retry_after_s(ahead)

    async def close(self) -> None:
        """Refuse what comes, answer what was accepted, stop the workers."""
        with self._lock:
            self._closing = True
            self._wake(len(self._workers))
        for worker in self._workers:
            await asyncio.to_thread(worker.join)

    def _refuse_at_the_end(self) -> None:
        if self._failure is not None:
            raise NotReadyError(self._failure)
        if self._closing:
            raise NotReadyError("The service is shutting down.")

    def _forget(self, submission: PendingRequest) -> None:
        with self._lock:
            for entry in self._waiting.remove(lambda entry: entry.submission is submission):
                self._admission.release(entry.request.tokens, bulk=entry.bulk)

    def _work(self) -> None:
        entries: list[QueuedPass] = []
        try:
            while entries := self._take():
                started_s = time.perf_counter()
                answers = self._compute(entries)
                self._release(entries, time.perf_counter() - started_s)
                self._deliver(entries, answers)
        except BaseException as error:  # noqa: BLE001 - callers must hear of the end of a thread, whatever it was
            self._die(entries, error)

    def _wake(self, workers: int) -> None:
        for _ in range(min(workers, len(self._idle))):
            self._idle.pop().notify()

    def _take(self) -> list[QueuedPass]:
        """The next batch, as soon as there is one; empty when there will be none any more."""
        with self._lock:
            while not self._waiting and not self._closing:
                woken = threading.Condition(self._lock)
                self._idle.append(woken)
                woken.wait()
            share = math.ceil(self._admission.tokens / len(self._workers))
            return self._waiting.take(min(share, self._max_batch_tokens))

    def _compute(self, entries: Sequence[QueuedPass]) -> list[PassOutputs | Exception]:
        started_s = time.perf_counter()
        try:
            batch = Batch.pack([entry.request for entry in entries])
            answers: list[PassOutputs | Exception] = [*batch.split(self._run(batch))]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's answer
            self._statistics.record_failure()
            if len(entries) == 1:
                return [error]
            _log.warning("a batch failed, each request is tried alone:\n%s", safe_traceback(error))
            return [answer for entry in entries for answer in self._compute([entry])]
        ended_s = time.perf_counter()
        self._statistics.record_batch(
            batch.tokens,
            batch.slots,
            (started_s - entry.submission.arrived_s for entry in entries),
            ended_s - started_s,
        )
        if self._spans is not None:
            callers = {entry.submission: None for entry in entries}  # each once, in order
            self._spans.record_batch(
                [(caller.span, caller.arrived_s) for caller in callers],
                started_s,
                ended_s,
                {"fillmask.batch.tokens": batch.tokens, "fillmask.batch.sequences": len(entries)},
            )
        return answers

    def _release(self, entries: Sequence[QueuedPass], elapsed_s: float) -> None:
        tokens = sum(entry.request.tokens for entry in entries)
        with self._lock:
            for entry in entries:
                self._admission.release(entry.request.tokens, bulk=entry.bulk)
            if not entries[0].bulk:  # those that can wait may be heavier, and hold up nobody
                self._admission.speed.note(tokens, elapsed_s)
            self._answered_s = time.monotonic()

    def _deliver(
        self, entries: Sequence[QueuedPass], answers: Sequence[PassOutputs | Exception]
    ) -> None:
        def settle() -> None:
            for entry, answer in zip(entries, answers, strict=True):
                entry.submission.settle(entry.index, answer)

        self._loop.call_soon_threadsafe(settle)

    def _die(self, entries: list[QueuedPass], error: BaseException) -> None:
        """Fail all who wait: with one worker dead, nobody knows what state the rest is in."""
        _log.critical("a worker has died:\n%s", safe_traceback(error))
        failure = "The service has failed and must be restarted."
        with self._lock:
            self._failure = failure
            self._closing = True
            entries = [*entries, *self._waiting.remove(lambda _: True)]
            self._admission.release_all()
            self._wake(len(self._workers))
        self._loop.call_soon_threadsafe(self._on_failure, failure)
        self._deliver(entries, [NotReadyError(failure)] * len(entries))
