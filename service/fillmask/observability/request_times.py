"""Durations within a request, for the header Server-Timing."""

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from fillmask.observability.request_context import CURRENT_SCOPE, TIMES

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class RequestTimes:
    """Durations of the steps of one request, in seconds.

    The steps of a request of several texts or passes may overlap. Each moment counts for one step
    only, so that the durations add up to no more than the request takes.

    Attributes:
        seconds: duration of each step by its name in the header.
    """

    __slots__ = ("_until_s", "seconds")

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._until_s = 0.0

    def add(self, step: str, began_s: float, ended_s: float) -> None:
        """Add the time between two moments of the performance counter that is not counted yet."""
        began_s = max(began_s, self._until_s)
        self.seconds[step] = self.seconds.get(step, 0.0) + max(0.0, ended_s - began_s)
        self._until_s = max(self._until_s, ended_s)

    def header(self, seconds: float) -> bytes:
        steps = {"app": seconds, **self.seconds}
        return ", ".join(f"{name};dur={one * 1000:.2f}" for name, one in steps.items()).encode()


def current_times() -> RequestTimes | None:
    scope = CURRENT_SCOPE.get()
    times: RequestTimes | None = None if scope is None else scope.get(TIMES)
    return times


def timed_tokenization(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function that adds the duration of each call to the current request."""

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        began_s = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            if (times := current_times()) is not None:
                times.add("tokenization", began_s, time.perf_counter())

    return call
