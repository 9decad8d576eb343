"""Admission of requests by the tokens that wait and the recent throughput."""

import math

from service.errors import InvalidRequestError, OverloadedError, overloaded_text
from service.observability.statistics import BatchStatistics, QueueLoad

# of what is known, so much is forgotten with each batch
_FORGOTTEN = 0.1


class Throughput:
    """Tokens a second, over the large batches of late: of all their tokens and all their time.

    A long queue is computed in large batches. Small ones are slow for their tokens, a third as fast
    where each is one short text, and say nothing of how long a long queue takes.

    Args:
        large_tokens: fewest of a batch that counts.
    """

    def __init__(self, large_tokens: int) -> None:
        self._large_tokens = large_tokens
        self._tokens = 0.0
        self._seconds = 0.0

    def note(self, tokens: int, seconds: float) -> None:
        """One more batch."""
        if tokens >= self._large_tokens:
            self._tokens += tokens - _FORGOTTEN * self._tokens
            self._seconds += seconds - _FORGOTTEN * self._seconds

    @property
    def tokens_per_s(self) -> float | None:
        """None before the first large batch."""
        return self._tokens / self._seconds if self._seconds else None


MAX_RETRY_AFTER_S = 30
# how much the latest request weighs in the usual length
_LATEST_WEIGHT = 0.05
# by whether they can wait
_LANES = {False: "interactive", True: "bulk"}


class Admission:
    """Counts tokens by lane, and refuses what would be too many. Not for several threads at a time.

    Args:
        workers: who compute at the same time.
        max_batch_tokens: most tokens of one of their batches.
        max_waiting_tokens: most tokens accepted and not answered yet, waiting or running.
        max_bulk_tokens: the same for those that can wait.
        max_wait_s: nothing more is accepted while the tokens that cannot wait would take longer
            than this at the speed of late.
        statistics: told of refusals.

    Attributes:
        speed: of a worker.
    """

    def __init__(
        self,
        workers: int,
        max_batch_tokens: int,
        max_waiting_tokens: int,
        max_bulk_tokens: int,
        max_wait_s: float,
        statistics: BatchStatistics,
    ) -> None:
        self.speed = Throughput(math.ceil(max_batch_tokens / 2))
        self._workers = workers
        # by whether they can wait
        self._most = {False: max_waiting_tokens, True: max_bulk_tokens}
        self._accepted = {False: 0, True: 0}
        self._max_wait_s = max_wait_s
        self._statistics = statistics
        self._usual_tokens = 0.0  # of a request that does not wait for others

    @property
    def tokens(self) -> int:
        """Accepted and not answered yet, over both lanes."""
        return sum(self._accepted.values())

    @property
    def load(self) -> QueueLoad:
        """How much there is to do, by lane: `interactive` is computed before `bulk`."""
        speed = self.speed.tokens_per_s
        return QueueLoad(
            {_LANES[bulk]: tokens for bulk, tokens in self._accepted.items()},
            {_LANES[bulk]: tokens for bulk, tokens in self._most.items()},
            None if speed is None else speed * self._workers,
            self._workers,
        )

    @property
    def estimated_wait_s(self) -> float:
        """How long what is accepted will take, but for what can wait; 0 while nothing is known."""
        return self._seconds_for(self._accepted[False])

    def accept(self, tokens: int, *, bulk: bool) -> None:
        """Count the tokens of a request as accepted.

        Raises:
            OverloadedError: too much waits already.
            InvalidRequestError: more tokens than are ever accepted.
        """
        self.check(tokens, bulk=bulk)
        self._accepted[bulk] += tokens
        if not bulk:
            self._usual_tokens += _LATEST_WEIGHT * (tokens - self._usual_tokens)

    def check(self, tokens: int, *, bulk: bool) -> None:
        """Refuse a request as `accept` would, and count nothing.

        Raises:
            OverloadedError: too much waits already.
            InvalidRequestError: more tokens than are ever accepted.
        """
        most = self._most[bulk]
        if tokens > most:
            where = "over all its passes" if bulk else "in all"
            raise InvalidRequestError(
                f"The request has {tokens} tokens {where}; at most {most} are allowed."
            )
        if self._refused(tokens, bulk=bulk):
            retry_after_s = self._retry_after_s(bulk=bulk)
            raise OverloadedError(overloaded_text(retry_after_s), retry_after_s)

    def retry_after_s(self, ahead: int) -> int | None:
        """Refuse a request of which nothing is known, if there is no room for it.

        Args:
            ahead: requests that have come before it and have no answer yet. Some of them may still
                be read, and will be submitted first: they count as of the usual length.

        Returns:
            Whole seconds after which there should be room; None where there is.
        """
        unread_tokens = max(0, int(ahead * self._usual_tokens) - self._accepted[False])
        refused = self._refused(1, bulk=False, unread_tokens=unread_tokens)
        return self._retry_after_s(bulk=False) if refused else None

    def release(self, tokens: int, *, bulk: bool) -> None:
        """They are answered, or nobody wants them any more."""
        self._accepted[bulk] -= tokens

    def release_all(self) -> None:
        """Nothing will be answered any more."""
        self._accepted = {False: 0, True: 0}

    def _refused(self, tokens: int, *, bulk: bool, unread_tokens: int = 0) -> bool:
        """Whether there is no room, which is counted."""
        accepted_tokens = self._accepted[bulk] + unread_tokens
        if accepted_tokens + tokens > self._most[bulk]:
            self._statistics.record_rejection("queue_full")
            return True
        if not bulk and self._seconds_for(accepted_tokens) > self._max_wait_s:
            self._statistics.record_rejection("wait_too_long")
            return True
        return False

    def _retry_after_s(self, *, bulk: bool) -> int:
        tokens = self._accepted[False] + bulk * self._accepted[True]
        return min(max(1, math.ceil(self._seconds_for(tokens))), MAX_RETRY_AFTER_S)

    def _seconds_for(self, tokens: int) -> float:
        """In which they should be done, at the speed of late."""
        speed = self.speed.tokens_per_s
        return 0 if speed is None else tokens / (speed * self._workers)
