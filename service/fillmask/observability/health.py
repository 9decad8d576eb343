"""Readiness and liveness of the service, with the reasons if it is not ready or not alive."""

import asyncio
import time

_BEAT_EVERY_S = 1
_DEAD_AFTER_S = 60


class Health:
    """Readiness of the service, which is final after a stop or a failure.

    Attributes:
        not_ready_reason: reason why the service is not ready, None if it is ready.
        failed: whether a failure must end the process.
        stopping: whether the service stops, because of a failure or a signal.
    """

    def __init__(self) -> None:
        self.not_ready_reason: str | None = "The service is starting; wait until it is ready."
        self.failed = False
        self.stopping = False
        self._stop_event = asyncio.Event()
        self._beat_s = time.monotonic()

    async def wait_until_stopping(self) -> None:
        await self._stop_event.wait()

    @property
    def not_alive_reason(self) -> str | None:
        """Reason why the event loop is not alive, for other threads. None if it is alive."""
        if time.monotonic() - self._beat_s < _DEAD_AFTER_S:
            return None
        return f"The event loop has not run for {_DEAD_AFTER_S} s; restart the service."

    async def beat(self) -> None:
        """Show that the event loop runs, until cancellation."""
        while True:
            self._beat_s = time.monotonic()
            await asyncio.sleep(_BEAT_EVERY_S)

    def ready(self) -> None:
        if not self.stopping:
            self.not_ready_reason = None

    def stop(self, reason: str) -> None:
        """Mark the service as stopping. A later call does not change the reason."""
        if not self.stopping:
            self.stopping = True
            self._stop_event.set()
            self.not_ready_reason = reason

    def fail(self, reason: str) -> None:
        self.failed = True
        self.stop(reason)
