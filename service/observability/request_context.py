"""Values that a request carries from one layer to another, among them its trace context."""

import re
from collections.abc import Iterable, MutableMapping
from contextvars import ContextVar
from typing import Any

HEADER = b"traceparent"
_TRACEPARENT = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)


def trace_id(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The id of the trace, 32 hexadecimal digits; None where the request is in none.

    Args:
        headers: of the request, their names in lower case.
    """
    found = [value for name, value in headers if name == HEADER]
    match = _TRACEPARENT.fullmatch(found[0].strip()) if len(found) == 1 else None
    # what versions to come may append, this one does not have
    if match is None or (match[1] == b"00" and match[3] is not None):
        return None
    return match[2].decode()


# keys of an ASGI scope
REQUEST_ID = "fillmask.request_id"  # bytes
MODEL = "fillmask.model"  # the name of the model that is asked, str
RESERVE = "fillmask.reserve"  # takes the memory that answering will hold
TRACE_ID = "fillmask.trace_id"  # where we trace it ourselves, str

# an unknown path, a page's file, or a request that was refused before its route was looked up
OTHER_ROUTE = "other"

# that of the request that is being answered here
CURRENT_SCOPE: ContextVar[MutableMapping[str, Any] | None] = ContextVar(
    "fillmask_request", default=None
)


def route_of(scope: MutableMapping[str, Any]) -> str:
    """The template of the route that a request has taken; never what a caller wrote."""
    route = scope.get("route")
    return OTHER_ROUTE if route is None else str(route.path_format)
