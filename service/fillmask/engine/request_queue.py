"""The queue of a batcher: requests, their passes in two lanes, and the choice of the next batch."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fillmask.engine.passes import ModelPass, PassOutputs
from fillmask.observability.request_context import current_deadline_s

Item = TypeVar("Item")

# a request with more tokens than this number of full batches joins the bulk lane
MAX_INTERACTIVE_BATCHES = 8
# While both lanes have items, at least one in this number of batches comes from each lane.
BATCHES_PER_BULK_BATCH = 8


def exceeds_interactive_lane(tokens: int, max_batch_tokens: int) -> bool:
    return tokens > MAX_INTERACTIVE_BATCHES * max_batch_tokens


def batch_budget(unanswered_tokens: int, workers: int, max_batch_tokens: int) -> int:
    """Return the token limit of a worker's next batch.

    It is an equal share of all waiting and running tokens, up to the token budget, because other
    workers may be idle if one takes a full batch.
    """
    return min(math.ceil(unanswered_tokens / workers), max_batch_tokens)


class LaneQueue(Generic[Item]):
    """A queue with two first-in-first-out lanes, interactive and bulk. It is not thread-safe.

    A long request may have hundreds of passes, such as one per token for the scores of a text,
    which later requests would wait for in a single lane.

    Args:
        tokens: function that returns the number of tokens of an item.
    """

    def __init__(self, tokens: Callable[[Item], int]) -> None:
        self._tokens = tokens
        self._interactive: deque[Item] = deque()
        self._bulk: deque[Item] = deque()
        self._bulk_credit = 0.0  # part of a batch that is due to the bulk lane

    def __bool__(self) -> bool:
        return bool(self._interactive or self._bulk)

    def extend(
        self,
        items: Iterable[Item],
        *,
        bulk: bool,
        before: Callable[[Item], bool] | None = None,
    ) -> None:
        """Append items to a lane, ahead of those for which `before` returns True."""
        lane = self._bulk if bulk else self._interactive
        later: list[Item] = []
        while before is not None and lane and before(lane[-1]):
            later.append(lane.pop())
        lane.extend(items)
        lane.extend(reversed(later))

    def next_batch(
        self,
        budget_tokens: int,
        bulk_share: Callable[[], float] = lambda: 1 / BATCHES_PER_BULK_BATCH,
    ) -> list[Item]:
        """Remove and return the oldest items of one lane.

        Args:
            budget_tokens: token limit of the batch. An item with more tokens forms a batch alone.
            bulk_share: function that returns the share of batches for the bulk lane while both
                lanes have items.
        """
        credit = min(1.0, self._bulk_credit + 1 / BATCHES_PER_BULK_BATCH)
        if self._bulk and self._interactive:
            credit = self._bulk_credit + bulk_share()
        is_bulk = bool(self._bulk) and (credit >= 1 or not self._interactive)
        lane = self._bulk if is_bulk else self._interactive
        self._bulk_credit = max(0.0, credit - 1) if is_bulk else credit
        batch: list[Item] = []
        tokens = 0
        while lane:
            tokens += self._tokens(lane[0])
            if batch and tokens > budget_tokens:
                break
            batch.append(lane.popleft())
        return batch

    def remove(self, is_unwanted: Callable[[Item], bool]) -> list[Item]:
        removed: list[Item] = []
        for lane in (self._interactive, self._bulk):
            kept = [item for item in lane if not is_unwanted(item)]
            removed += [item for item in lane if is_unwanted(item)]
            lane.clear()
            lane.extend(kept)
        return removed


@dataclass(slots=True, eq=False)
class RequestParts:
    """State of a request that submits its passes in one or several parts.

    Attributes:
        bulk: whether all parts join the bulk lane.
        expected_tokens: estimate of the tokens of all parts. 0 if there is only one.
        deadline_s: time by which the response must start, in seconds of the monotonic clock.
        admitted: whether the queue has accepted a part. The estimated wait then no longer matters,
            because it may be that of the request's own parts, also in an idle service.
    """

    bulk: bool = False
    admitted: bool = False
    expected_tokens: int = 0
    deadline_s: float = field(default_factory=current_deadline_s)
    # of a request in the bulk lane: its place, its time to end, and the tokens until then
    number: int = 0
    due_s: float = math.inf
    left_tokens: int = 0


class PendingRequest:
    """A request that waits for the outputs of all its passes or for the first failure.

    Attributes:
        span: trace context of the request, or None without traces.
        arrived_s: in seconds of the performance counter, as are the next two.
        started_s: start of the first batch with a pass of the request.
        ended_s: end of the last batch with a pass of the request.
    """

    def __init__(
        self, future: asyncio.Future[list[PassOutputs]], count: int, span: object = None
    ) -> None:
        self.future = future
        self.span = span
        self.arrived_s = time.perf_counter()
        self.started_s, self.ended_s = math.inf, -math.inf
        self._results: dict[int, PassOutputs] = {}
        self._count = count

    def record_run(self, started_s: float, ended_s: float) -> None:
        """Record the times of a batch with a pass of the request, before the pass has a result."""
        self.started_s = min(self.started_s, started_s)
        self.ended_s = max(self.ended_s, ended_s)

    def set_result(self, index: int, result: PassOutputs | Exception) -> None:
        """Store the result of one pass. Only the event loop may call this method."""
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
    """A pass in the queue, with its request.

    Attributes:
        index: position of the pass in the request, from 0.
        bulk: whether the pass waits in the bulk lane.
        parts: state of all parts of the request.
    """

    model_pass: ModelPass
    request: PendingRequest
    index: int
    bulk: bool
    parts: RequestParts
