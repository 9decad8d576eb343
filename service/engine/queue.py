"""Queue of model passes in two lanes, and the requests that the passes belong to."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.engine.batch import ModelPass, PassOutputs


class PendingRequest:
    """A request that waits for the outputs of all its passes, or for the first failure.

    Attributes:
        future: receives the outputs or the failure; belongs to the caller's event loop.
        span: the caller's tracing span, if requests are traced.
        arrived_s: time of the request, by the performance counter.

    Args:
        count: number of passes.
    """

    def __init__(
        self, future: asyncio.Future[list[PassOutputs]], count: int, span: object = None
    ) -> None:
        self.future = future
        self.span = span
        self.arrived_s = time.perf_counter()
        self._results: dict[int, PassOutputs] = {}
        self._count = count

    def set_result(self, index: int, result: PassOutputs | Exception) -> None:
        """Store the result of one pass. Call it on the event loop only."""
        if self.future.done():
            return
        if isinstance(result, Exception):
            self.future.set_exception(result)
            return
        self._results[index] = result
        if len(self._results) == self._count:
            self.future.set_result([self._results[i] for i in range(self._count)])


@dataclass(frozen=True, slots=True, eq=False)
class QueuedPass:
    """A pass in the queue, with the request that receives its outputs.

    Attributes:
        model_pass: the pass to compute.
        request: the request that the pass belongs to.
        index: position of the pass in the request.
        bulk: whether the pass waits in the bulk lane.
    """

    model_pass: ModelPass
    request: PendingRequest
    index: int
    bulk: bool


Item = TypeVar("Item")

# One batch in this many comes from the bulk lane, even if the interactive lane is never empty.
BATCHES_PER_BULK_BATCH = 8


class LaneQueue(Generic[Item]):
    """Two first-in-first-out lanes, interactive and bulk. Not thread-safe.

    A long request, such as the scores of a text token by token, is hundreds of passes. In a single
    queue, each interactive request would wait for all of them.

    Args:
        tokens: returns the tokens of an item.
    """

    def __init__(self, tokens: Callable[[Item], int]) -> None:
        self._tokens = tokens
        self._interactive: deque[Item] = deque()
        self._bulk: deque[Item] = deque()
        self._interactive_batches = 0  # since the last bulk batch

    def __bool__(self) -> bool:
        return bool(self._interactive or self._bulk)

    def extend(self, items: Iterable[Item], *, bulk: bool) -> None:
        """Append items to the bulk or the interactive lane."""
        (self._bulk if bulk else self._interactive).extend(items)

    def next_batch(self, budget_tokens: int) -> list[Item]:
        """Remove and return the oldest items of one lane, empty only if the queue is empty.

        Args:
            budget_tokens: most tokens of the batch; a larger item is a batch of its own.
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
        """Remove and return the unwanted items of both lanes."""
        removed: list[Item] = []
        for lane in (self._interactive, self._bulk):
            kept = [item for item in lane if not is_unwanted(item)]
            removed += [item for item in lane if is_unwanted(item)]
            lane.clear()
            lane.extend(kept)
        return removed
