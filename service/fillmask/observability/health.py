"""Readiness of the service, with the reason if it is not ready."""


class Health:
    """Readiness of the service.

    The service is not ready until the first call of `ready`. After a stop or a failure, the service
    does not become ready again.
    """

    def __init__(self) -> None:
        self._reason: str | None = "The service is starting; wait until it is ready."
        self._stopped = False
        self._failed = False

    @property
    def not_ready_reason(self) -> str | None:
        """Reason why the service is not ready. The reason is None if the service is ready."""
        return self._reason

    @property
    def failed(self) -> bool:
        """True after a failure that must end the process."""
        return self._failed

    def ready(self) -> None:
        """Mark the service as ready, unless it is stopping."""
        if not self._stopped:
            self._reason = None

    def stop(self, reason: str) -> None:
        """Mark the service as stopping. A later call does not change the reason."""
        if not self._stopped:
            self._stopped = True
            self._reason = reason

    def fail(self, reason: str) -> None:
        """Mark the service as failed."""
        self.stop(reason)
        self._failed = True
