"""Requests that wait for the outputs of their passes."""

import asyncio
import math
import time
from dataclasses import dataclass, field

from fillmask.engine.passes import ModelPass, PassOutputs
from fillmask.observability.request_context import current_deadline_s


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

    Args:
        count: number of passes.
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
