"""Admit or refuse at once, form batches by token budget, run them on worker threads."""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.batch import Batch, Fills, Outputs, Request
from service.errors import (
    InvalidRequestError,
    NotReadyError,
    OverloadedError,
    overloaded_text,
    trace,
)
from service.speed import Speed
from service.waiting import Waiting

_log = logging.getLogger(__name__)

MAX_RETRY_AFTER_S = 30
# a request of more tokens than fit so many batches waits while others do
PROMPT_BATCHES = 8


class _Submission:
    """What one caller waits for: the answers to all of its requests, or the first failure."""

    def __init__(self, future: asyncio.Future[list[Fills]], count: int) -> None:
        self.future = future
        self._answers: dict[int, Fills] = {}
        self._count = count

    def settle(self, index: int, answer: Fills | Exception) -> None:
        """Note one answer; on the event loop only."""
        if self.future.done():
            return
        if isinstance(answer, Exception):
            self.future.set_exception(answer)
            return
        self._answers[index] = answer
        if len(self._answers) == self._count:
            self.future.set_result([self._answers[i] for i in range(self._count)])


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """One request in the queue, and where its answer goes."""

    request: Request
    submission: _Submission
    index: int
    patient: bool


class Batcher:
    """A first-in-first-out queue of requests before worker threads that run batches.

    A worker that becomes free takes at once what has waited longest, up to its equal share of the
    tokens that wait or run, and to the token budget: no batch is held back for company, no worker
    is idle while another has a crowd, and nobody waits for a text that came later. A request above
    share or budget runs alone. Lengths are not sorted: the graph packs long and short texts
    together almost without loss (`service.bins`). Requests of many passes wait in a lane of their
    own, with a limit of its own, so that they hold up nobody else. Create and close it on the event
    loop that submits.

    Args:
        run: computes a batch; called from the workers, several at a time.
        workers: threads.
        max_batch_tokens: budget of a batch.
        max_waiting_tokens: most tokens accepted and not answered yet, waiting or running.
        max_patient_tokens: the same for those that can wait.
        max_wait_s: nothing more is accepted while the tokens that cannot wait would take longer
            than this at the speed of late.
        on_failure: called on the event loop with a sentence when a worker has died and nothing
            can be computed any more.
    """

    def __init__(
        self,
        run: Callable[[Batch], Outputs],
        workers: int,
        max_batch_tokens: int,
        max_waiting_tokens: int,
        max_patient_tokens: int,
        max_wait_s: float,
        on_failure: Callable[[str], None],
    ) -> None:
        self._run = run
        self._max_batch_tokens = max_batch_tokens
        self._max_accepted_tokens = {False: max_waiting_tokens, True: max_patient_tokens}
        self._max_wait_s = max_wait_s
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        # guards all below
        self._lock = threading.Lock()
        # who has nothing to do, the last to have worked last: its CPU's caches are the warmest
        self._idle: list[threading.Condition] = []
        self._waiting: Waiting[_Entry] = Waiting(lambda entry: entry.request.tokens)
        self._accepted_tokens = {False: 0, True: 0}  # by whether they can wait
        self._closing = False
        self._failure: str | None = None
        self._speed = Speed()  # of a worker
        self._answered_s = time.monotonic()
        self._workers = [
            threading.Thread(target=self._work, name=f"fillmask-worker-{i}", daemon=True)
            for i in range(workers)
        ]
        for worker in self._workers:
            worker.start()

    async def submit(self, requests: Sequence[Request], *, patient: bool = False) -> list[Fills]:
        """Answer all the requests, in their order; they are admitted together or not at all.

        A caller that is cancelled is taken out of the queue.

        Args:
            requests: at least one.
            patient: whether they are a part of many passes, and wait while others do; so do they
                if they are many themselves.

        Raises:
            OverloadedError: too much waits already.
            InvalidRequestError: more tokens than are ever accepted.
            NotReadyError: the batcher is closing, or a worker has died.
            Exception: whatever `run` raised for one of these requests alone.
        """
        assert requests, "nobody would ever be told that nothing is done"  # noqa: S101
        tokens = sum(request.tokens for request in requests)
        patient |= tokens > PROMPT_BATCHES * self._max_batch_tokens
        submission = _Submission(self._loop.create_future(), len(requests))
        entries = [_Entry(request, submission, i, patient) for i, request in enumerate(requests)]
        with self._lock:
            self._admit(tokens, patient=patient)
            self._accepted_tokens[patient] += tokens
            self._waiting.extend(entries, patient=patient)
            self._wake(len(entries))
        try:
            return await submission.future
        except BaseException:  # the caller was cancelled, or one request failed: drop the rest
            self._forget(submission)
            raise

    @property
    def answered_s(self) -> float:
        """When the last batch was done, by the monotonic clock."""
        return self._answered_s

    def check_room(self, *, patient: bool = False) -> None:
        """Refuse a request while nothing is known of it; whether it is accepted `submit` decides.

        Raises:
            OverloadedError: too much waits already.
            NotReadyError: the batcher is closing, or a worker has died.
        """
        self._admit(1, patient=patient)

    @property
    def retry_after_s(self) -> int | None:
        """Whole seconds after which there should be room, where there is none now."""
        if self._has_room(1, patient=False):
            return None
        return self._retry_after_s(patient=False)

    async def close(self) -> None:
        """Refuse what comes, answer what was accepted, stop the workers."""
        with self._lock:
            self._closing = True
            self._wake(len(self._workers))
        for worker in self._workers:
            await asyncio.to_thread(worker.join)

    def _admit(self, tokens: int, *, patient: bool) -> None:
        if self._failure is not None:
            raise NotReadyError(self._failure)
        if self._closing:
            raise NotReadyError("The service is shutting down.")
        most = self._max_accepted_tokens[patient]
        if tokens > most:
            where = "over all its passes" if patient else "in all"
            raise InvalidRequestError(
                f"The request has {tokens} tokens {where}; at most {most} are allowed."
            )
        if not self._has_room(tokens, patient=patient):
            retry_after_s = self._retry_after_s(patient=patient)
            raise OverloadedError(overloaded_text(retry_after_s), retry_after_s)

    def _has_room(self, tokens: int, *, patient: bool) -> bool:
        if self._accepted_tokens[patient] + tokens > self._max_accepted_tokens[patient]:
            return False
        return patient or self._wait_s(patient=False) <= self._max_wait_s

    def _retry_after_s(self, *, patient: bool) -> int:
        return min(max(1, math.ceil(self._wait_s(patient=patient))), MAX_RETRY_AFTER_S)

    def _wait_s(self, *, patient: bool) -> float:
        """Seconds in which what was accepted should be done, at the speed of late."""
        speed = self._speed.tokens_per_s
        if speed is None:
            return 0
        tokens = self._accepted_tokens[False] + patient * self._accepted_tokens[True]
        return tokens / (speed * len(self._workers))

    def _forget(self, submission: _Submission) -> None:
        with self._lock:
            for entry in self._waiting.remove(lambda entry: entry.submission is submission):
                self._accepted_tokens[entry.patient] -= entry.request.tokens

    def _work(self) -> None:
        entries: list[_Entry] = []
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

    def _take(self) -> list[_Entry]:
        """The next batch, as soon as there is one; empty when there will be none any more."""
        with self._lock:
            while not self._waiting and not self._closing:
                woken = threading.Condition(self._lock)
                self._idle.append(woken)
                woken.wait()
            tokens = sum(self._accepted_tokens.values())
            share = math.ceil(tokens / len(self._workers))
            return self._waiting.take(min(share, self._max_batch_tokens))

    def _compute(self, entries: Sequence[_Entry]) -> list[Fills | Exception]:
        try:
            batch = Batch.pack([entry.request for entry in entries])
            return list(batch.split(self._run(batch)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's answer
            if len(entries) == 1:
                return [error]
            _log.warning("a batch failed, each request is tried alone:\n%s", trace(error))
            return [answer for entry in entries for answer in self._compute([entry])]

    def _release(self, entries: Sequence[_Entry], elapsed_s: float) -> None:
        tokens = sum(entry.request.tokens for entry in entries)
        with self._lock:
            for entry in entries:
                self._accepted_tokens[entry.patient] -= entry.request.tokens
            self._speed.note(tokens, elapsed_s)
            self._answered_s = time.monotonic()

    def _deliver(self, entries: Sequence[_Entry], answers: Sequence[Fills | Exception]) -> None:
        def settle() -> None:
            for entry, answer in zip(entries, answers, strict=True):
                entry.submission.settle(entry.index, answer)

        self._loop.call_soon_threadsafe(settle)

    def _die(self, entries: list[_Entry], error: BaseException) -> None:
        """Fail all who wait: with one worker dead, nobody knows what state the rest is in."""
        _log.critical("a worker has died:\n%s", trace(error))
        failure = "The service has failed and must be restarted."
        with self._lock:
            self._failure = failure
            self._closing = True
            entries = [*entries, *self._waiting.remove(lambda _: True)]
            self._accepted_tokens = {False: 0, True: 0}
            self._wake(len(self._workers))
        self._loop.call_soon_threadsafe(self._on_failure, failure)
        self._deliver(entries, [NotReadyError(failure)] * len(entries))
