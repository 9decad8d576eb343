"""Admission of requests by the number of accepted tokens and the recent throughput."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fillmask.engine.request_queue import BATCHES_PER_BULK_BATCH, RequestParts
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

    Workers compute a long queue in such batches. All others have a lower throughput per thread,
    down to a third with one short text. The estimate is the larger of two means, over the recent
    large batches and over all. If the first one is too low for the admission of large batches, the
    second one still follows the batches that run, so that no wrong estimate lasts.

    Args:
        min_batch_tokens: tokens of the smallest large batch.

    Attributes:
        recorded_s: time of the last record, in seconds of the monotonic clock.
    """

    def __init__(self, min_batch_tokens: int) -> None:
        self._min_batch_tokens = min_batch_tokens
        self._large = _RecentMean()
        self._all = _RecentMean()
        self.recorded_s = -math.inf

    def record(self, tokens: int, seconds: float, threads: int = 1) -> None:
        """Record the duration of a batch that could use a number of threads."""
        self.recorded_s = time.monotonic()
        self._all.add(tokens, seconds * threads)
        if threads == 1 and tokens >= self._min_batch_tokens:
            self._large.add(tokens, seconds)

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens per second, or None before the first large batch."""
        large = self._large.tokens_per_s
        return max(large, self._all.tokens_per_s) if large else None


class _RecentMean:
    """Tokens of recent batches divided by their seconds."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._seconds = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        """Add a batch, as at most _MAX_SLOWDOWN times slower, because the process may freeze."""
        if self._seconds:
            seconds = min(seconds, _MAX_SLOWDOWN * tokens / self.tokens_per_s)
        self._tokens += tokens - _DECAY * self._tokens
        self._seconds += seconds - _DECAY * self._seconds

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second, or 0 before the first batch."""
        return self._tokens / self._seconds if self._seconds else 0.0


MAX_RETRY_AFTER_S = 30
# Share of the workers' time on which bulk requests may count. An idle bulk lane accepts a request
# that needs more, because nobody else could answer it sooner. Both leave room for other texts and
# for the end of the last batch.
_BULK_SHARE, _LONE_BULK_SHARE = 0.5, 0.8
# Bulk requests should be done at this share of their time.
_DUE_SHARE = 0.8
# The throughput of bulk batches, and that of all batches, is unknown this long after the last one,
# so that a wrong estimate cannot refuse all bulk requests, which would correct it.
_BULK_MEMORY_S, _MEMORY_S = 5.0, 300.0
_MIN_SHARE = 1 / BATCHES_PER_BULK_BATCH
# names of the lanes, where True is the bulk lane
_LANES = {False: "interactive", True: "bulk"}


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """Load of a batcher, with tokens that wait or run by lane.

    Attributes:
        tokens_per_s: recent throughput of all workers, None before the first large batch.
    """

    waiting_tokens: Mapping[str, int]
    most_waiting_tokens: Mapping[str, int]
    tokens_per_s: float | None
    workers: int


class Admission:
    """Admission control by the accepted tokens of each lane and the estimated wait.

    A bulk request is accepted if the workers can compute all bulk requests until then in half of
    their time before its deadline. `bulk_share` is the share that they need to keep this promise.

    An instance is not thread-safe.

    Args:
        max_waiting_tokens: limit on the tokens that wait or run in the interactive lane.
        max_bulk_tokens: the same for the bulk lane.
        max_wait_s: maximum estimated wait in the interactive lane, in seconds.
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
        self._bulk_throughput = _RecentMean()
        self._last_bulk_s = -math.inf
        # requests in the bulk lane in their order, and the sum of their tokens
        self._promised: dict[RequestParts, None] = {}
        self._promised_tokens = self._numbers = 0
        self._share = 0.0  # the last share of bulk requests

    @property
    def tokens(self) -> int:
        return sum(self._accepted.values())

    @property
    def load(self) -> QueueLoad:
        throughput = self.throughput.tokens_per_s
        return QueueLoad(
            {_LANES[bulk]: tokens for bulk, tokens in self._accepted.items()},
            {_LANES[bulk]: tokens for bulk, tokens in self._max_tokens.items()},
            None if throughput is None else throughput * self._workers,
            self._workers,
        )

    def accept(self, tokens: int, *, bulk: bool, parts: RequestParts) -> None:
        """Accept a request or a part of it, and count its tokens.

        Raises:
            OverloadedError: the lane is too full, or the estimated wait is too long.
            InvalidRequestError: the request alone exceeds the limit of its lane or its time.
        """
        self.check(tokens, bulk=bulk, parts=parts)
        self._accepted[bulk] += tokens
        if not parts.admitted:
            parts.admitted = True
            if bulk:
                self._promise(parts, max(tokens, parts.expected_tokens))

    def check(self, tokens: int, *, bulk: bool, parts: RequestParts) -> None:
        """Raise the errors of `accept` without counting the tokens."""
        max_tokens = self._max_tokens[bulk]
        if tokens > max_tokens:
            scope, setting = ("over all its passes", "BULK") if bulk else ("in all", "WAITING")
            raise InvalidRequestError(
                f"The request must have at most {max_tokens} tokens {scope} (got {tokens}); "
                f"send fewer or shorter texts, or raise FILLMASK_MAX_{setting}_TOKENS."
            )
        if reason := self._overload(tokens, bulk=bulk, parts=parts):
            if self._metrics is not None:
                self._metrics.record_rejection(reason)
            retry_after_s = self._retry_after_s(bulk=bulk)
            raise OverloadedError(
                f"The service is overloaded; try again in {retry_after_s} s.", retry_after_s
            )

    def release(self, tokens: int, *, bulk: bool, parts: RequestParts) -> None:
        """Give back the tokens of completed or cancelled passes."""
        self._accepted[bulk] -= tokens
        self._fulfil(parts, tokens)

    def forget(self, parts: RequestParts) -> None:
        self._fulfil(parts, parts.left_tokens)
        self._promised.pop(parts, None)
        if not self._promised:
            self._share = 0.0

    def record(self, tokens: int, seconds: float, threads: int, *, bulk: bool) -> None:
        if bulk:  # may cost more per token, and does not delay other requests
            self._bulk_throughput.add(tokens, seconds * threads)
            self._last_bulk_s = time.monotonic()
        else:
            self.throughput.record(tokens, seconds, threads)

    def bulk_share(self) -> float:
        """Return the share of batches by which all bulk requests end in time."""
        now_s, token_s = time.monotonic(), self._bulk_seconds_for(1)
        ahead, share = 0, _MIN_SHARE
        for parts in self._promised:
            ahead += parts.left_tokens
            share = max(share, ahead * token_s / max(parts.due_s - now_s, 1e-3))
        self._share = min(share, 1 - _MIN_SHARE)
        return self._share

    def _promise(self, parts: RequestParts, tokens: int) -> None:
        now_s = time.monotonic()
        parts.due_s = now_s + _DUE_SHARE * (parts.deadline_s - now_s)
        self._numbers += 1
        parts.number, parts.left_tokens = self._numbers, tokens
        self._promised[parts] = None
        self._promised_tokens += tokens

    def _fulfil(self, parts: RequestParts, tokens: int) -> None:
        done = min(tokens, parts.left_tokens)
        parts.left_tokens -= done
        self._promised_tokens -= done

    def _is_too_late(self, tokens: int, parts: RequestParts) -> bool:
        """Return whether a bulk request has too little time behind all others.

        Raises:
            InvalidRequestError: the request has too little time even alone.
        """
        tokens = max(tokens, parts.expected_tokens)
        left_s = parts.deadline_s - time.monotonic()
        alone_s = self._bulk_seconds_for(tokens)
        if alone_s > _LONE_BULK_SHARE * left_s:
            raise InvalidRequestError(
                f"The request needs about {alone_s:.3g} s of the model, which is too long for its "
                f"time limit of {left_s:.3g} s; allow more time in X-Request-Timeout-Ms or send "
                "fewer or shorter texts."
            )
        all_s = alone_s + self._bulk_seconds_for(self._promised_tokens)
        return self._promised_tokens > 0 and all_s > _BULK_SHARE * left_s

    def _overload(self, tokens: int, *, bulk: bool, parts: RequestParts) -> str | None:
        """Return the limit of the lane that the tokens exceed, as the metrics name it."""
        if self._accepted[bulk] + tokens > self._max_tokens[bulk]:
            return "queue_full"
        if parts.admitted:
            return None
        if bulk:
            waits = self._is_too_late(tokens, parts)
        else:
            wait_s = self._seconds_for(self._accepted[False])
            waits = wait_s > self._max_wait_s * (1 - self._share)
        return "wait_too_long" if waits else None

    def _retry_after_s(self, *, bulk: bool) -> int:
        tokens = self._accepted[False] + bulk * self._accepted[True]
        return min(max(1, math.ceil(self._seconds_for(tokens))), MAX_RETRY_AFTER_S)

    def _bulk_seconds_for(self, tokens: int) -> float:
        now_s = time.monotonic()
        if now_s - self._last_bulk_s > _BULK_MEMORY_S:
            is_known = now_s - self.throughput.recorded_s <= _MEMORY_S
            return self._seconds_for(tokens) if is_known else 0.0
        return tokens / (self._bulk_throughput.tokens_per_s * self._workers)

    def _seconds_for(self, tokens: int) -> float:
        """Estimate the seconds that the workers need for tokens at the recent throughput."""
        throughput = self.throughput.tokens_per_s
        return 0 if throughput is None else tokens / (throughput * self._workers)
