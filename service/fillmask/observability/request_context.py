"""What follows a request through all layers: its id, trace, deadline, durations and notices."""

import logging
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# W3C Trace Context. Later versions may append fields.
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def trace_id(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the 32 hexadecimal digits of the header traceparent, None without a valid one."""
    for name, value in headers:
        if name == b"traceparent" and (match := _TRACEPARENT.fullmatch(value.strip())):
            return match[1].decode()
    return None


# keys of an ASGI scope
REQUEST_ID = "fillmask.request_id"  # bytes
MODEL = "fillmask.model"  # name of the requested model, str
CLAIM = "fillmask.claim"  # claim on the memory budget, for the body and the response
TIMES = "fillmask.times"  # durations of the steps of the request
DEADLINE = "fillmask.deadline"  # float, in seconds of the monotonic clock
NOTICES = "fillmask.notices"  # counts of what the model did not read as written
TRACE_ID = "fillmask.trace_id"  # str, set only when this service traces the request

# route of an unknown path, of a static file, and of a request rejected before routing
OTHER_ROUTE = "other"

# scope of the request that the current task handles
CURRENT_SCOPE: ContextVar[MutableMapping[str, Any] | None] = ContextVar(
    "fillmask_request", default=None
)


def current_deadline_s() -> float:
    """Return the deadline in seconds of the monotonic clock, infinite outside of HTTP requests."""
    scope = CURRENT_SCOPE.get()
    deadline_s: float = math.inf if scope is None else scope.get(DEADLINE, math.inf)
    return deadline_s


def route_of(scope: MutableMapping[str, Any]) -> str:
    """Return the template of the matched route, which never contains text of the client."""
    route = scope.get("route")
    return OTHER_ROUTE if route is None else str(route.path_format)


class RequestTimes:
    """Durations of the steps of one request, in seconds.

    The steps of a request of several texts or passes may overlap. Each moment counts for one step
    only, so that the durations add up to no more than the request takes.

    Attributes:
        seconds: duration of each step by its name in the header.
    """

    __slots__ = ("_until_s", "seconds")

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._until_s = 0.0

    def add(self, step: str, began_s: float, ended_s: float) -> None:
        """Add the time between two moments of the performance counter that is not counted yet."""
        began_s = max(began_s, self._until_s)
        self.seconds[step] = self.seconds.get(step, 0.0) + max(0.0, ended_s - began_s)
        self._until_s = max(self._until_s, ended_s)

    def header(self, seconds: float) -> bytes:
        steps = {"app": seconds, **self.seconds}
        return ", ".join(f"{name};dur={one * 1000:.2f}" for name, one in steps.items()).encode()


def current_times() -> RequestTimes | None:
    scope = CURRENT_SCOPE.get()
    times: RequestTimes | None = None if scope is None else scope.get(TIMES)
    return times


def timed_tokenization(function: Callable[[], Result]) -> Result:
    """Call a function and add its duration to the current request."""
    began_s = time.perf_counter()
    try:
        return function()
    finally:
        if (times := current_times()) is not None:
            times.add("tokenization", began_s, time.perf_counter())


# What an answer says beside its results: what the model did not read in the texts as written. HTTP
# counts it in the header X-Warnings, Python and the command log it.
Notice = Literal["unknown_tokens", "literal_special_tokens", "truncated_texts"]

READS_GOLDEN: ContextVar[bool] = ContextVar("fillmask_reads_golden", default=False)

_log = logging.getLogger("fillmask")
_noticed: Counter[Notice] = Counter()  # texts outside of HTTP


def notice(kind: Notice, count: int, text: str) -> None:
    """Count something that the model did not read as written.

    Outside of HTTP, the first, tenth, hundredth text and so on is logged.

    Args:
        count: how many tokens or texts.
        text: the sentence to log.
    """
    scope = CURRENT_SCOPE.get()
    if scope is not None:
        scope.setdefault(NOTICES, Counter())[kind] += count
        return
    _noticed[kind] += 1
    digits = str(_noticed[kind])
    if digits.rstrip("0") == "1":
        _log.warning("%s%s", text, "" if digits == "1" else f" ({digits} such texts)")


@contextmanager
def reading_golden_texts() -> Iterator[None]:
    """Read golden texts in the `with` block, whatever they lose."""
    token = READS_GOLDEN.set(True)
    try:
        yield
    finally:
        READS_GOLDEN.reset(token)


def notices_header(notices: Counter[Notice]) -> bytes:
    return ", ".join(f"{kind}={count}" for kind, count in sorted(notices.items())).encode()


class Tracer(Protocol):
    """Interface of a tracer, with times in seconds of the performance counter."""

    def current_context(self) -> object:
        """Return the trace context of the current request, which is the parent of later spans."""

    def traced(
        self, name: str, function: Callable[Arguments, Result]
    ) -> Callable[Arguments, Result]:
        """Wrap a function, so that each call records a span with the given name."""

    def record_batch(
        self,
        requests: Sequence[tuple[object, float]],
        started_s: float,
        ended_s: float,
        attributes: Mapping[str, int],
    ) -> None:
        """Record the spans of a batch, on the thread that has computed it.

        Args:
            requests: trace context and arrival time of each request in the batch.
        """
