"""Timeouts for sending a request, for reading its response, and between requests."""

from typing import Literal

REQUEST_TIMEOUT_S = 30  # for sending a request, from its first byte to its last
RESPONSE_TIMEOUT_S = 60  # for reading a response

ExpiredTimeout = Literal["request", "response", "keep-alive"]


class ClientTimeouts:
    """Timers of one connection.

    Args:
        keep_alive_s: maximum time between a response and the next request, in seconds.
        now_s: start of the first request's timer, in seconds of the event loop's clock.
    """

    def __init__(self, keep_alive_s: float, now_s: float) -> None:
        self._keep_alive_s = keep_alive_s
        self._request_since_s: float | None = now_s
        self._idle_since_s: float | None = None
        self._unread_since_s: float | None = None

    def record_request(self, *, begun: bool, complete: bool, now_s: float) -> None:
        """Record the progress of the current request."""
        if complete:
            self._request_since_s = self._idle_since_s = None
        elif begun:
            self._idle_since_s = None
            if self._request_since_s is None:
                self._request_since_s = now_s
        elif self._request_since_s is None and self._idle_since_s is None:
            self._idle_since_s = now_s

    def record_unread(self, unread_bytes: int, now_s: float) -> None:
        """Record the number of response bytes that the client has not read."""
        if not unread_bytes:
            self._unread_since_s = None
        elif self._unread_since_s is None:
            self._unread_since_s = now_s

    def expired(self, now_s: float) -> ExpiredTimeout | None:
        """Return the timeout that has expired, if any."""
        timeouts: list[tuple[ExpiredTimeout, float | None, float]] = [
            ("response", self._unread_since_s, RESPONSE_TIMEOUT_S),
            ("keep-alive", self._idle_since_s, self._keep_alive_s),
            ("request", self._request_since_s, REQUEST_TIMEOUT_S),
        ]
        for name, since_s, timeout_s in timeouts:
            if since_s is not None and now_s - since_s > timeout_s:
                return name
        return None
