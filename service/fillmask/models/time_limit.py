"""Time limit of the verification of a model, which ends the runs of its graph."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fillmask.errors import BundleError


class TimeLimit:
    """A context that ends the runs of a model if it takes too long or raises an error.

    The runs may block the thread of the context, so another thread measures the time.

    Args:
        seconds: time from the call of `start` to the end of the context.

    Raises:
        BundleError: the end of the context comes too late.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self._timer: threading.Timer | None = None
        self._exceeded = self._ended = False

    def start(self, stop: Callable[[], None]) -> None:
        """Start the measurement, on any thread.

        Args:
            stop: function that ends all runs, those in progress and later ones.
        """
        with self._lock:
            if self._ended:  # another thread has left the context
                stop()
                return
            self._stop = stop
            self._timer = threading.Timer(self._seconds, self._exceed)
            self._timer.daemon = True
            self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
            if exception is not None and self._stop is not None:
                self._stop()
            self._stop = None
        if self._exceeded and (exception is None or isinstance(exception, Exception)):
            raise BundleError(
                "The bundle does not work on this machine: its verification must take at most "
                f"{self._seconds:g} s (got more); use a smaller model or a faster machine."
            ) from exception

    def _exceed(self) -> None:
        with self._lock:
            if self._stop is not None:
                self._exceeded = True
                self._stop()
