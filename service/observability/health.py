"""Readiness of the service."""


class Health:
    """Readiness state: not ready at first, and never ready again after a stop or a failure."""

    def __init__(self) -> None:
        self._reason: str | None = "The service is starting."
        self._stopped = False
        self._failed = False

    @property
    def not_ready_reason(self) -> str | None:
        """Reason why the service is not ready; None when it is ready."""
        return self._reason

    @property
    def failed(self) -> bool:
        """True after a failure that must end the process."""
        return self._failed

    def ready(self) -> None:
        """Mark the service ready: its models are loaded and verified."""
        if not self._stopped:
            self._reason = None

    def stop(self, reason: str) -> None:
        """Mark the service as stopping; the first reason stays."""
        if not self._stopped:
            self._stopped = True
            self._reason = reason

    def fail(self, reason: str) -> None:
        """Mark the service as failed."""
        self.stop(reason)
        self._failed = True
