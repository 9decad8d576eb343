"""Whether the service can answer, and why not."""


class Health:
    """Not ready until told so, and never again once it has stopped or failed."""

    def __init__(self) -> None:
        self._reason: str | None = "The service is starting."
        self._over = False

    @property
    def reason(self) -> str | None:
        """Why the service is not ready; None when it is."""
        return self._reason

    def ready(self) -> None:
        """The model is loaded and answers as it must."""
        if not self._over:
            self._reason = None

    def end(self, reason: str) -> None:
        """The service stops or has failed; the first reason stays."""
        if not self._over:
            self._over = True
            self._reason = reason
