"""What the pipelines of all tasks have in common: a plan, which may refuse, and a run."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, NamedTuple, Protocol, TypeVar

from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import InputText
from fillmask.tasks.result import RejectedText
from fillmask.tokenization.reader import text_label

T = TypeVar("T")


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


Parameters_co = TypeVar("Parameters_co", covariant=True)
Parameters = TypeVar("Parameters")
PlanT = TypeVar("PlanT", bound=Plan)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Inputs(Generic[Parameters_co]):
    """The texts of a request.

    Attributes:
        parameters: the parameters of each text.
        label: the client's name for the texts, for error messages.
        report_errors: whether the results contain the errors of invalid texts.
    """

    texts: Sequence[InputText]
    parameters: Sequence[Parameters_co]
    label: str = "inputs"
    report_errors: bool = False

    def each(self, read: Callable[[InputText, Parameters_co, str], T]) -> list[T | RejectedText]:
        """Read each text with its parameters and its name in error messages.

        Raises:
            InvalidRequestError: a text is invalid, without `report_errors`.
        """
        found: list[T | RejectedText] = []
        for index, (text, own) in enumerate(zip(self.texts, self.parameters, strict=True)):
            try:
                found.append(read(text, own, text_label(self.label, index, self.texts)))
            except InvalidRequestError as error:
                if not self.report_errors:
                    raise
                found.append(RejectedText(error.text))
        return found


class Pipeline(ABC, Generic[Parameters, PlanT, Result]):
    """Pipeline of a task of a model."""

    @abstractmethod
    async def plan(self, inputs: Inputs[Parameters]) -> PlanT:
        """Tokenize texts or pairs and check the work that they need.

        Raises:
            InvalidRequestError: the request exceeds a limit, or as in `Inputs.each`.
        """

    @abstractmethod
    async def run(self, plan: PlanT) -> list[Result | RejectedText]:
        """Return the result of each planned text. The errors are the batcher's."""

    async def compute(
        self,
        texts: Sequence[InputText],
        parameters: Sequence[Parameters],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> list[Result | RejectedText]:
        """Plan and run. Arguments are those of `Inputs`, and errors those of both."""
        inputs = Inputs(texts, parameters, label, report_errors)
        return await self.run(await self.plan(inputs))

    def check(self, parameters: Parameters) -> None:
        """Raise an InvalidRequestError if parameters are invalid for every text."""
