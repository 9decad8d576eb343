"""Interface to a tracer of requests; no tracer is installed by default."""

from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Tracer(Protocol):
    """Receives spans. Times are seconds of the performance counter."""

    def current_context(self) -> object:
        """Return the trace context of the current request, the parent of later spans."""

    def traced(
        self, name: str, function: Callable[Arguments, Result]
    ) -> Callable[Arguments, Result]:
        """Wrap a function in a span of this name per call."""

    def record_batch(
        self,
        requests: Sequence[tuple[object, float]],
        started_s: float,
        ended_s: float,
        attributes: Mapping[str, int],
    ) -> None:
        """Record the spans of a batch, from the thread that computed it.

        Args:
            requests: trace context and arrival time of each request with a part in the batch.
            started_s: time at which its computation started.
            ended_s: time at which its computation ended.
            attributes: span attributes of the batch.
        """
