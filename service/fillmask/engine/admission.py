"""Admission of requests by the number of accepted tokens and the recent throughput."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fillmask.errors import InvalidRequestError, OverloadedError

if TYPE_CHECKING:  # an import of prometheus-client takes 50 ms, and the library has no metrics
    from fillmask.observability.metrics import ModelMetrics

# share by which each new batch reduces the previous sums of tokens and seconds
_DECAY = 0.1
# A smaller limit would also cut off stalls that every third batch has, such as those of throttled
# CPUs.
_MAX_SLOWDOWN = 4


class Throughput:
    """Recent throughput of a worker in tokens per second, in large batches on one thread.

    The throughput predicts the duration of a long queue, which workers compute in such batches.
    All other batches have a lower throughput per thread, down to a third with one short text. The
    estimate is therefore the larger of two means, one over recent large batches and one over all
    recent batches. If the first mean is too low for the admission of large batches, the second one
    still follows the batches that run, so that no wrong estimate can last. In both means a batch
    counts as at most _MAX_SLOWDOWN times slower than before, because its duration may include a
    freeze of the whole process.

    Args:
        min_batch_tokens: tokens of the smallest large batch.
    """

    def __init__(self, min_batch_tokens: int) -> None:
        self._min_batch_tokens = min_batch_tokens
        self._large = _RecentMean()
        self._all = _RecentMean()

    def record(self, tokens: int, seconds: float, threads: int = 1) -> None:
        """Record a batch.

        Args:
            seconds: duration of the batch.
            threads: number of threads that the batch could use.
        """
        self._all.add(tokens, seconds * threads)
        if threads == 1 and tokens >= self._min_batch_tokens:
            self._large.add(tokens, seconds)

    @property
    def tokens_per_s(self) -> float | None:
        """Recent throughput in tokens per second, or None before the first large batch."""
        large = self._large.tokens_per_s
        return max(large, self._all.tokens_per_s) if large else None


class _RecentMean:
    """Tokens of recent batches divided by their seconds."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._seconds = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        """Add a batch, as at most _MAX_SLOWDOWN times slower than the mean."""
        if self._seconds:
            seconds = min(seconds, _MAX_SLOWDOWN * tokens / self.tokens_per_s)
        self._tokens += tokens - _DECAY * self._tokens
        self._seconds += seconds - _DECAY * self._seconds

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second, or 0 before the first batch."""
        return self._tokens / self._seconds if self._seconds else 0.0


MAX_RETRY_AFTER_S = 30
# names of the lanes, where True is the bulk lane
_LANES = {False: "interactive", True: "bulk"}


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """Load of a batcher.

    Attributes:
        waiting_tokens: number of tokens that wait or run, by lane.
        most_waiting_tokens: limit on the tokens that wait or run, by lane.
        tokens_per_s: recent throughput of all workers in large batches. The value is None before
            the first large batch.
    """

    waiting_tokens: Mapping[str, int]
    most_waiting_tokens: Mapping[str, int]
    tokens_per_s: float | None
    workers: int


class Admission:
    """Admission control by the accepted tokens of each lane and the estimated wait.

    An instance is not thread-safe.

    Args:
        max_waiting_tokens: maximum number of waiting and running tokens in the interactive lane.
        max_bulk_tokens: maximum number of waiting and running tokens in the bulk lane.
        max_wait_s: maximum estimated wait in the interactive lane, in seconds.
        metrics: counters of rejections, by default none.

    Attributes:
        throughput: recent throughput of one worker.
    """

    def __init__(
        self,
        workers: int,
        max_batch_tokens: int,
        max_waiting_tokens: int,
        max_bulk_tokens: int,
        max_wait_s: float,
        metrics: "ModelMetrics | None" = None,
    ) -> None:
        self.throughput = Throughput(math.ceil(max_batch_tokens / 2))
        self._workers = workers
        # limits of the lanes, where True is the bulk lane
        self._max_tokens = {False: max_waiting_tokens, True: max_bulk_tokens}
        self._accepted = {False: 0, True: 0}
        self._max_wait_s = max_wait_s
        self._metrics = metrics

    @property
    def tokens(self) -> int:
        """Number of waiting and running tokens in both lanes."""
        return sum(self._accepted.values())

    @property
    def load(self) -> QueueLoad:
        """Load of both lanes and of the workers."""
        throughput = self.throughput.tokens_per_s
        return QueueLoad(
            {_LANES[bulk]: tokens for bulk, tokens in self._accepted.items()},
            {_LANES[bulk]: tokens for bulk, tokens in self._max_tokens.items()},
            None if throughput is None else throughput * self._workers,
            self._workers,
        )

    def accept(self, tokens: int, *, bulk: bool, admitted: bool = False) -> None:
        """Accept a request or a part of it, and count its tokens.

        Args:
            admitted: whether another part of the request has been accepted.

        Raises:
            OverloadedError: the lane has too little free capacity, or the estimated wait is too
                long.
            InvalidRequestError: the request alone exceeds the limit of its lane.
        """
        self.check(tokens, bulk=bulk, admitted=admitted)
        self._accepted[bulk] += tokens

    def check(self, tokens: int, *, bulk: bool, admitted: bool = False) -> None:
        """Raise the errors of `accept` without counting the tokens.

        Raises:
            OverloadedError: the lane has too little free capacity, or the estimated wait is too
                long.
            InvalidRequestError: the request alone exceeds the limit of its lane.
        """
        max_tokens = self._max_tokens[bulk]
        if tokens > max_tokens:
            scope = "over all its passes" if bulk else "in all"
            raise InvalidRequestError(
                f"The request must have at most {max_tokens} tokens {scope} (got {tokens}); "
                "send fewer or shorter texts."
            )
        if self._is_overloaded(tokens, bulk=bulk, admitted=admitted):
            retry_after_s = self._retry_after_s(bulk=bulk)
            raise OverloadedError(
                f"The service is overloaded; try again in {retry_after_s} s.", retry_after_s
            )

    def release(self, tokens: int, *, bulk: bool) -> None:
        """Subtract the tokens of completed or cancelled passes from the count of their lane."""
        self._accepted[bulk] -= tokens

    def _is_overloaded(self, tokens: int, *, bulk: bool, admitted: bool) -> bool:
        """Record a rejection and return True if the tokens exceed a limit of the lane."""
        if self._accepted[bulk] + tokens > self._max_tokens[bulk]:
            reason = "queue_full"
        elif bulk or admitted:
            return False
        elif self._seconds_for(self._accepted[False]) > self._max_wait_s:
            reason = "wait_too_long"
        else:
            return False
        if self._metrics is not None:
            self._metrics.record_rejection(reason)
        return True

    def _retry_after_s(self, *, bulk: bool) -> int:
        tokens = self._accepted[False] + bulk * self._accepted[True]
        return min(max(1, math.ceil(self._seconds_for(tokens))), MAX_RETRY_AFTER_S)

    def _seconds_for(self, tokens: int) -> float:
        """Estimate the seconds that the workers need for tokens at the recent throughput."""
        throughput = self.throughput.tokens_per_s
        return 0 if throughput is None else tokens / (throughput * self._workers)
