"""Readiness and liveness of the service, with the reasons if it is not ready or not alive."""

import asyncio
import time

_BEAT_EVERY_S = 1
_DEAD_AFTER_S = 60


class Health:
    """Readiness of the service.

    The service is not ready until the first call of `ready`. After a stop or a failure, the service
    does not become ready again.
    """

    def __init__(self) -> None:
        self._reason: str | None = "The service is starting; wait until it is ready."
        self._stopping = asyncio.Event()
        self._failed = False
        self._beat_s = time.monotonic()

    @property
    def not_ready_reason(self) -> str | None:
        """Reason why the service is not ready. The reason is None if the service is ready."""
        return self._reason

    @property
    def stopping(self) -> bool:
        """True after a stop or a failure."""
        return self._stopping.is_set()

    async def wait_until_stopping(self) -> None:
        """Wait for a stop or a failure."""
        await self._stopping.wait()

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

    @property
    def failed(self) -> bool:
        """True after a failure that must end the process."""
        return self._failed

    def ready(self) -> None:
        """Mark the service as ready, unless it is stopping."""
        if not self.stopping:
            self._reason = None

    def stop(self, reason: str) -> None:
        """Mark the service as stopping. A later call does not change the reason."""
        if not self.stopping:
            self._stopping.set()
            self._reason = reason

    def fail(self, reason: str) -> None:
        """Mark the service as failed."""
        self._failed = True
        self.stop(reason)
