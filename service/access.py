"""ASGI middleware: each request is counted."""

import time
from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.request_statistics import RequestStatistics

# what nginx logs for it, and what the endpoints of FastAPI answer nobody
CALLER_LEFT = 499
# an unknown path, a page's file, or a request that was refused before its route was looked up
OTHER = "other"


class Access:
    """Counts requests by method, route and status, and the seconds they took.

    Args:
        app: the application.
        statistics: told of each request.
    """

    def __init__(self, app: ASGIApp, statistics: RequestStatistics) -> None:
        self._app = app
        self._statistics = statistics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun_s = time.perf_counter()
        status = CALLER_LEFT

        def watch(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            return send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            seconds = time.perf_counter() - begun_s
            self._statistics.of(scope["method"], route_of(scope)).note(status, seconds)


def route_of(scope: Scope) -> str:
    """The template of the route that a request has taken; never what a caller wrote."""
    route = scope.get("route")
    return OTHER if route is None else str(route.path_format)
