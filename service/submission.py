"""What the batcher's queue holds: requests, and who waits for their answers."""

import asyncio
import time
from dataclasses import dataclass

from service.batch import Fills, Request


class Submission:
    """What one caller waits for: the answers to all of its requests, or the first failure.

    Attributes:
        future: done when it has them.
        arrived_s: when they were asked for, by the performance counter.
        span: of the caller, where requests are traced.

    Args:
        future: of the caller's event loop.
        count: how many answers there are to be.
        span: of the caller.
    """

    def __init__(
        self, future: asyncio.Future[list[Fills]], count: int, span: object = None
    ) -> None:
        self.future = future
        self.span = span
        self.arrived_s = time.perf_counter()
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
class Entry:
    """One request in the queue, and where its answer goes.

    Attributes:
        request: to be computed.
        submission: it is a part of.
        index: its place there.
        patient: whether it can wait.
    """

    request: Request
    submission: Submission
    index: int
    patient: bool
