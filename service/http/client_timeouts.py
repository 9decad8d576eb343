"""Timeouts of a client: to send its request, to read the response, and between requests."""

from typing import Literal

REQUEST_TIMEOUT_S = 30  # to send a request, from its first byte to its last
RESPONSE_TIMEOUT_S = 60  # to read a response

ExpiredTimeout = Literal["request", "response", "keep-alive"]


class ClientTimeouts:
    """Timers of one connection, in seconds of the event loop's clock.

    Args:
        keep_alive_s: timeout between a response and the next request.
        now_s: time of the connection, at which the timer of its first request starts.
    """

    def __init__(self, keep_alive_s: float, now_s: float) -> None:
        self._keep_alive_s = keep_alive_s
        self._request_since_s: float | None = now_s
        self._idle_since_s: float | None = None
        self._unread_since_s: float | None = None

    def record_request(self, *, begun: bool, complete: bool, now_s: float) -> None:
        """Record how much of the current request has arrived."""
        if complete:
            self._request_since_s = self._idle_since_s = None
        elif begun:
            self._idle_since_s = None
            if self._request_since_s is None:
                self._request_since_s = now_s
        elif self._request_since_s is None and self._idle_since_s is None:
            self._idle_since_s = now_s

    def record_unread(self, unread_bytes: int, now_s: float) -> None:
        """Record how many bytes of a response the client has not read yet."""
        if not unread_bytes:
            self._unread_since_s = None
        elif self._unread_since_s is None:
            self._unread_since_s = now_s

    def expired(self, now_s: float) -> ExpiredTimeout | None:
        """Return the timeout that has expired, or None."""
        timeouts: list[tuple[ExpiredTimeout, float | None, float]] = [
            ("response", self._unread_since_s, RESPONSE_TIMEOUT_S),
            ("keep-alive", self._idle_since_s, self._keep_alive_s),
            ("request", self._request_since_s, REQUEST_TIMEOUT_S),
        ]
        for name, since_s, timeout_s in timeouts:
            if since_s is not None and now_s - since_s > timeout_s:
                return name
        return None
