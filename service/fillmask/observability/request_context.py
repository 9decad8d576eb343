"""Context of a request, such as its id, model, route and trace."""

import math
import re
from collections.abc import Iterable, MutableMapping
from contextvars import ContextVar
from typing import Any

HEADER = b"traceparent"
_TRACEPARENT = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)


def trace_id(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the trace id of a valid traceparent header.

    Args:
        headers: headers of the request, with names in lower case.

    Returns:
        The 32 hexadecimal digits of the id, or None without a valid header.
    """
    found = [value for name, value in headers if name == HEADER]
    match = _TRACEPARENT.fullmatch(found[0].strip()) if len(found) == 1 else None
    # only versions after 00 may append fields
    if match is None or (match[1] == b"00" and match[3] is not None):
        return None
    return match[2].decode()


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
    """Return the deadline of the current request, in seconds of the monotonic clock.

    Without a deadline, as outside of HTTP requests, the result is infinite.
    """
    scope = CURRENT_SCOPE.get()
    deadline_s: float = math.inf if scope is None else scope.get(DEADLINE, math.inf)
    return deadline_s


def route_of(scope: MutableMapping[str, Any]) -> str:
    """Return the template of the matched route, which never contains text of the client."""
    route = scope.get("route")
    return OTHER_ROUTE if route is None else str(route.path_format)
