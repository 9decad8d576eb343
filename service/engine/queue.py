"""Passes that wait for a batch, in two lanes, and the requests they belong to."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.engine.batch import Fills, Request


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


Item = TypeVar("Item")

# Of so many batches one is taken from the lane that can wait, even if the other is never empty.
PATIENT_BATCHES = 8


class Waiting(Generic[Item]):
    """Two queues, first in first out each. Not for several threads at a time.

    A long job, such as the scores of a text token by token, is hundreds of passes. In one queue
    with the fills, each of them would wait for all of those.

    Args:
        tokens: of an item.
    """

    def __init__(self, tokens: Callable[[Item], int]) -> None:
        self._tokens = tokens
        self._prompt: deque[Item] = deque()
        self._patient: deque[Item] = deque()
        self._prompt_batches = 0  # since the last patient one

    def __bool__(self) -> bool:
        return bool(self._prompt or self._patient)

    def extend(self, items: Iterable[Item], *, patient: bool) -> None:
        """Append items to the lane that can wait, or to the other."""
        (self._patient if patient else self._prompt).extend(items)

    def take(self, budget_tokens: int) -> list[Item]:
        """The next batch: what has waited longest in its lane, at least one item.

        Args:
            budget_tokens: most tokens of a batch of several items.
        """
        turn = self._prompt_batches >= PATIENT_BATCHES - 1
        lane = self._patient if self._patient and (turn or not self._prompt) else self._prompt
        self._prompt_batches = 0 if lane is self._patient else self._prompt_batches + 1
        batch: list[Item] = []
        tokens = 0
        while lane:
            tokens += self._tokens(lane[0])
            if batch and tokens > budget_tokens:
                break
            batch.append(lane.popleft())
        return batch

    def remove(self, is_unwanted: Callable[[Item], bool]) -> list[Item]:
        """Take out what is unwanted, wherever it is."""
        removed: list[Item] = []
        for lane in (self._prompt, self._patient):
            kept = [item for item in lane if not is_unwanted(item)]
            removed += [item for item in lane if is_unwanted(item)]
            lane.clear()
            lane.extend(kept)
        return removed
