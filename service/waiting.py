"""What waits to be computed, in two lanes: fills before what can wait."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

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
