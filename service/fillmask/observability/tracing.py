"""Interface of an optional tracer of requests."""

from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Tracer(Protocol):
    """Interface of a tracer, with times in seconds of the performance counter."""

    def current_context(self) -> object:
        """Return the trace context of the current request, which is the parent of later spans."""

    def traced(
        self, name: str, function: Callable[Arguments, Result]
    ) -> Callable[Arguments, Result]:
        """Wrap a function, so that each call records a span with the given name."""

    def record_batch(
        self,
        requests: Sequence[tuple[object, float]],
        started_s: float,
        ended_s: float,
        attributes: Mapping[str, int],
    ) -> None:
        """Record the spans of a batch. The thread that computed the batch calls this method.

        Args:
            requests: trace context and arrival time of each request in the batch.
            attributes: span attributes of the batch.
        """
