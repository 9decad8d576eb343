"""Whether the service can answer, and why not."""


class Health:
    """Not ready until told so, and never again once it has stopped or failed."""

    def __init__(self) -> None:
        self._reason: str | None = "The service is starting."
        self._stopped = False
        self._failed = False

    @property
    def not_ready_reason(self) -> str | None:
        """Why the service is not ready; None when it is."""
        return self._reason

    @property
    def failed(self) -> bool:
        """Whether it will never answer again, and the process must end."""
        return self._failed

    def ready(self) -> None:
        """The model is loaded and answers as it must."""
        if not self._stopped:
            self._reason = None

    def stop(self, reason: str) -> None:
        """The service stops; the first reason stays."""
        if not self._stopped:
            self._stopped = True
            self._reason = reason

    def fail(self, reason: str) -> None:
        """The service has failed."""
        self.stop(reason)
        self._failed = True
