"""Batch formation from two lanes of waiting items."""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")

# a request with more tokens than this number of full batches joins the bulk lane
MAX_INTERACTIVE_BATCHES = 8
# While both lanes have items, one in this number of batches comes from the bulk lane.
BATCHES_PER_BULK_BATCH = 8


def exceeds_interactive_lane(tokens: int, max_batch_tokens: int) -> bool:
    """Return whether a request is too long for the interactive lane.

    Args:
        tokens: number of tokens in all passes of the request.
    """
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
    """A queue with two first-in-first-out lanes, interactive and bulk.

    A long request may have hundreds of passes, such as one pass per token for the scores of a
    text. In a queue with a single lane, each later request waits for all these passes. An instance
    is not thread-safe.

    Args:
        tokens: function that returns the number of tokens of an item.
    """

    def __init__(self, tokens: Callable[[Item], int]) -> None:
        self._tokens = tokens
        self._interactive: deque[Item] = deque()
        self._bulk: deque[Item] = deque()
        self._interactive_batches = 0  # number since the last bulk batch

    def __bool__(self) -> bool:
        return bool(self._interactive or self._bulk)

    def extend(self, items: Iterable[Item], *, bulk: bool) -> None:
        """Append items to the bulk or the interactive lane."""
        (self._bulk if bulk else self._interactive).extend(items)

    def next_batch(self, budget_tokens: int) -> list[Item]:
        """Remove and return the oldest items of one lane.

        Args:
            budget_tokens: token limit of the batch. An item with more tokens forms a batch alone.
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
        """Remove and return the items of both lanes for which `is_unwanted` returns True."""
        removed: list[Item] = []
        for lane in (self._interactive, self._bulk):
            kept = [item for item in lane if not is_unwanted(item)]
            removed += [item for item in lane if is_unwanted(item)]
            lane.clear()
            lane.extend(kept)
        return removed
