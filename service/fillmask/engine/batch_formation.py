"""Batch formation from two lanes of waiting items."""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")

# a request with more tokens than this number of full batches joins the bulk lane
MAX_INTERACTIVE_BATCHES = 8
# While both lanes have items, at least one in this number of batches comes from each lane.
BATCHES_PER_BULK_BATCH = 8


def exceeds_interactive_lane(tokens: int, max_batch_tokens: int) -> bool:
    return tokens > MAX_INTERACTIVE_BATCHES * max_batch_tokens


def batch_budget(unanswered_tokens: int, workers: int, max_batch_tokens: int) -> int:
    """Return the token limit of a worker's next batch.

    The limit is an equal share of the unanswered tokens, up to the token budget. With equal shares,
    the workers finish at about the same time. If one worker takes a full batch instead, the other
    workers may be idle.

    Args:
        unanswered_tokens: number of waiting and running tokens in both lanes.
    """
    return min(math.ceil(unanswered_tokens / workers), max_batch_tokens)


class LaneQueue(Generic[Item]):
    """A queue with two first-in-first-out lanes, interactive and bulk. It is not thread-safe.

    A long request may have hundreds of passes, such as one pass per token for the scores of a
    text. In a queue with a single lane, each later request waits for all these passes.

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
