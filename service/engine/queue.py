"""Passes that wait for a batch, in two lanes, and the requests they belong to."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.engine.batch import ModelPass, PassOutputs


class PendingRequest:
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
        self, future: asyncio.Future[list[PassOutputs]], count: int, span: object = None
    ) -> None:
        self.future = future
        self.span = span
        self.arrived_s = time.perf_counter()
        self._answers: dict[int, PassOutputs] = {}
        self._count = count

    def settle(self, index: int, answer: PassOutputs | Exception) -> None:
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
class QueuedPass:
    """One request in the queue, and where its answer goes.

    Attributes:
        request: to be computed.
        submission: it is a part of.
        index: its place there.
        bulk: whether it can wait.
    """

    request: ModelPass
    submission: PendingRequest
    index: int
    bulk: bool


Item = TypeVar("Item")

# Of so many batches one is taken from the lane that can wait, even if the other is never empty.
BATCHES_PER_BULK_BATCH = 8


class LaneQueue(Generic[Item]):
    """Two queues, first in first out each. Not for several threads at a time.

    A long job, such as the scores of a text token by token, is hundreds of passes. In one queue
    with the fills, each of them would wait for all of those.

    Args:
        tokens: of an item.
    """

    def __init__(self, tokens: Callable[[Item], int]) -> None:
        self._tokens = tokens
        self._interactive: deque[Item] = deque()
        self._bulk: deque[Item] = deque()
        self._interactive_batches = 0  # since the last bulk one

    def __bool__(self) -> bool:
        return bool(self._interactive or self._bulk)

    def extend(self, items: Iterable[Item], *, bulk: bool) -> None:
        """Append items to the lane that can wait, or to the other."""
        (self._bulk if bulk else self._interactive).extend(items)

    def take(self, budget_tokens: int) -> list[Item]:
        """The next batch: what has waited longest in its lane, at least one item.

        Args:
            budget_tokens: most tokens of a batch of several items.
        """
        turn = self._interactive_batches >= BATCHES_PER_BULK_BATCH - 1
        lane = self._bulk if self._bulk and (turn or not self._interactive) else self._interactive
        self._interactive_batches = 0 if lane is self._bulk else self._interactive_batches + 1
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
        for lane in (self._interactive, self._bulk):
            kept = [item for item in lane if not is_unwanted(item)]
            removed += [item for item in lane if is_unwanted(item)]
            lane.clear()
            lane.extend(kept)
        return removed
