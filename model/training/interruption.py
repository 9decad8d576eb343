"""Requests to end a run early, by a time limit or by SIGTERM."""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType
from typing import Self

SECONDS_PER_HOUR = 3600


class StopRequest:
    """Answers, between steps, whether to stop; used as a context that listens for SIGTERM.

    Args:
        hours: after which to stop; None for no limit.
    """

    def __init__(self, hours: float | None = None) -> None:
        seconds = float("inf") if hours is None else hours * SECONDS_PER_HOUR
        self._end = time.monotonic() + seconds
        self._terminated = False

    def __call__(self) -> bool:
        """Return whether the time is over or the process was asked to terminate."""
        return self._terminated or time.monotonic() >= self._end

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, self._terminate)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        self._terminated = True
