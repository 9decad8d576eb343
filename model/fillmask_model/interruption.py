"""Early stop of a training run after a time limit or on SIGTERM."""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType
from typing import Self

SECONDS_PER_HOUR = 3600


class StopRequest:
    """Stop condition of a training run.

    The object is also a context manager, which handles SIGTERM within its `with` block. A handler
    from outside the block also receives the signal, so that a script can stop with the run that it
    starts.

    Args:
        hours: time limit in hours. None for no limit.
    """

    def __init__(self, hours: float | None = None) -> None:
        seconds = float("inf") if hours is None else hours * SECONDS_PER_HOUR
        self._end = time.monotonic() + seconds
        self._terminated = False

    def __call__(self) -> bool:
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

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        self._terminated = True
        if callable(self._before):
            self._before(number, frame)
