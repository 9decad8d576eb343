"""Batch formation: two lanes of waiting items, and the choice of the next batch."""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")

# A request of more tokens than this many batches waits in the bulk lane.
MAX_INTERACTIVE_BATCHES = 8
# One batch in this many comes from the bulk lane, even if the interactive lane is never empty.
BATCHES_PER_BULK_BATCH = 8


def exceeds_interactive_lane(tokens: int, max_batch_tokens: int) -> bool:
    """Return whether a request is too long for the interactive lane.

    Args:
        tokens: tokens of all passes of the request.
        max_batch_tokens: token budget of a batch.
    """
    return tokens > MAX_INTERACTIVE_BATCHES * max_batch_tokens


def batch_budget(unanswered_tokens: int, workers: int, max_batch_tokens: int) -> int:
    """Return the most tokens of a worker's next batch: its equal share, up to the token budget.

    Workers that share a queue equally finish together. A worker that took a full batch would leave
    the others idle.

    Args:
        unanswered_tokens: tokens of all passes that wait or run.
        workers: number of workers.
        max_batch_tokens: token budget of a batch.
    """
    return min(math.ceil(unanswered_tokens / workers), max_batch_tokens)


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
