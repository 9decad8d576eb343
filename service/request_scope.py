"""What is noted of a request on its way, for those who speak of it later."""

from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any

# keys of an ASGI scope
REQUEST_ID = "fillmask.request_id"  # bytes
MODEL = "fillmask.model"  # the name of the model that is asked, str
RESERVE = "fillmask.reserve"  # takes the memory that answering will hold
TRACE_ID = "fillmask.trace_id"  # where we trace it ourselves, str

# an unknown path, a page's file, or a request that was refused before its route was looked up
OTHER = "other"

# that of the request that is being answered here
CURRENT: ContextVar[MutableMapping[str, Any] | None] = ContextVar("fillmask_request", default=None)


def route_of(scope: MutableMapping[str, Any]) -> str:
    """The template of the route that a request has taken; never what a caller wrote."""
    route = scope.get("route")
    return OTHER if route is None else str(route.path_format)
