"""What the pipelines of all tasks have in common: a plan, which may refuse, and a run."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Generic, NamedTuple, Protocol, TypeVar

from fillmask.parameters.texts import InputText
from fillmask.tasks.result import RejectedText


class Size(NamedTuple):
    """Upper bounds of the bytes that a request takes from its first pass to its last byte.

    Attributes:
        json_bytes: bytes of the response as JSON.
        work_bytes: bytes of the passes and the results, besides the JSON.
        advice: how to get a smaller response, for error messages.
    """

    json_bytes: int
    work_bytes: int
    advice: str


def largest_sums(sizes: Iterable[int]) -> Sequence[int]:
    """Return the sum of the k largest sizes, by k."""
    return (0, *accumulate(sorted(sizes, reverse=True)))


class Plan(Protocol):
    """The texts of a request, ready to become passes."""

    @property
    def is_large(self) -> bool:
        """Whether ranking or serializing takes too long for the event loop."""

    @property
    def size(self) -> Size: ...


Parameters_contra = TypeVar("Parameters_contra", contravariant=True)
PlanT = TypeVar("PlanT", bound=Plan)
Result = TypeVar("Result")


class Pipeline(ABC, Generic[Parameters_contra, PlanT, Result]):
    """Pipeline of a task of a model."""

    @abstractmethod
    async def plan(
        self,
        texts: Sequence[InputText],
        parameters: Sequence[Parameters_contra],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> PlanT:
        """Tokenize texts or pairs and check the work that they need.

        Args:
            parameters: the parameters of each text.
            label: the client's name for the texts, for error messages.
            report_errors: whether the results contain the errors of invalid texts.

        Raises:
            InvalidRequestError: the request exceeds a limit. Without `report_errors`, an invalid
                text also raises this error.
        """

    @abstractmethod
    async def run(self, plan: PlanT) -> list[Result | RejectedText]:
        """Return the result of each planned text. The errors are the batcher's."""

    async def compute(
        self,
        texts: Sequence[InputText],
        parameters: Sequence[Parameters_contra],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> list[Result | RejectedText]:
        """Plan and run. Arguments and errors are those of both."""
        return await self.run(
            await self.plan(texts, parameters, label, report_errors=report_errors)
        )

    def check(self, parameters: Parameters_contra) -> None:
        """Raise an InvalidRequestError if parameters are invalid for every text."""
