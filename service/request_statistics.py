"""What is counted of requests, by method and route. Plain numbers: a lock would cost more."""

from service.histogram import Histogram

# from a short text on an idle machine to the default time limit
REQUEST_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class RouteStatistics:
    """Requests of one method to one route.

    Attributes:
        seconds: from a request's head to the end of its answer.
        statuses: how many were answered with each HTTP status.
    """

    __slots__ = ("seconds", "statuses")

    def __init__(self) -> None:
        self.seconds = Histogram(REQUEST_SECONDS)
        self.statuses: dict[int, int] = {}

    def note(self, status: int, seconds: float) -> None:
        """Count a request that is over."""
        self.note_refused(status)
        self.seconds.note(seconds)

    def note_refused(self, status: int) -> None:
        """Count a request that was refused before anybody looked at it: it took no time."""
        self.statuses[status] = self.statuses.get(status, 0) + 1


class RequestStatistics:
    """Requests by method and route. Written on the event loop alone."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str, str], RouteStatistics] = {}

    def of(self, method: str, route: str) -> RouteStatistics:
        """Those of a route.

        Args:
            method: of HTTP; all that nothing here answers are one.
            route: a template such as `/models/{name}`, never a path with what a caller put into it:
                each is kept for good.
        """
        found = self._routes.get((method, route))
        if found is None:
            key = (method if method in _METHODS else "other", route)
            found = self._routes.setdefault(key, RouteStatistics())
        return found

    @property
    def routes(self) -> list[tuple[tuple[str, str], RouteStatistics]]:
        """Each method and route so far."""
        return list(self._routes.items())
