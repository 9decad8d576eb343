"""What is told of the parts of a request to who traces requests; nobody does by default."""

from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Tracer(Protocol):
    """Where spans go. Times are of the performance counter, in seconds."""

    def current_context(self) -> object:
        """The span of the request that is being answered here, if any: its parts' parent later."""

    def traced(
        self, name: str, function: Callable[Arguments, Result]
    ) -> Callable[Arguments, Result]:
        """The function, with a span of that name around each call."""

    def record_batch(
        self,
        callers: Sequence[tuple[object, float]],
        started_s: float,
        ended_s: float,
        attributes: Mapping[str, int],
    ) -> None:
        """Tell of a batch, from the thread that has computed it.

        Args:
            callers: of each caller with a part in it the span, and when it began to wait.
            started_s: when the batch began to be computed.
            ended_s: when it was computed.
            attributes: of the batch.
        """
