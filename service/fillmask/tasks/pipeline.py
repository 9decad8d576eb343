"""What the pipelines of all tasks have in common: a plan, which may refuse, and a run.

Texts are read on the event loop, or on another thread if they take too long. Work below the bounds
here takes at most 0.3 ms. A switch to another thread and back takes 0.03 ms.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Generic, NamedTuple, Protocol, TypeVar

from fillmask.bundles.bundle import Bundle
from fillmask.engine.batcher import Batcher
from fillmask.errors import InvalidRequestError
from fillmask.observability.request_context import Tracer, timed_tokenization
from fillmask.parameters.texts import InputText, Truncation
from fillmask.tasks.result import RejectedText
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.reader import TextReader, text_label
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer

# number of targets or labels to sort
LARGE_RANKING = 5_000
# number of characters of results to create and to serialize
LARGE_RESULT_CHARS = 100_000

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


class Parts(NamedTuple):
    """What a pipeline is made of.

    Attributes:
        max_masks: maximum number of masks in the texts of one request.
        max_passes: maximum number of passes for one request.
        truncates: whether a text that exceeds the model's input loses tokens by default.
    """

    bundle: Bundle
    tokenizer: Tokenizer
    batcher: Batcher
    max_masks: int
    max_passes: int
    truncates: bool
    tracer: Tracer | None


def is_large(ranked: int, cost_chars: int) -> bool:
    """Return whether ranking or serializing results takes too long for the event loop.

    Args:
        ranked: number of targets or labels to sort.
        cost_chars: characters of the results. A result also counts as the number of characters
            that take as long to copy as creating it takes.
    """
    return ranked > LARGE_RANKING or cost_chars > LARGE_RESULT_CHARS


async def tokenize(plan: Callable[[], T], chars: int, tracer: Tracer | None) -> T:
    """Return the plan of a request, and record how long its tokenization takes.

    Args:
        chars: number of characters to tokenize.
    """
    plan = partial(timed_tokenization, plan)
    if tracer is not None:
        plan = tracer.traced("tokenize", plan)
    return plan() if chars < LONG_TEXT_CHARS else await asyncio.to_thread(plan)


class HasTruncation(Protocol):
    @property
    def truncation(self) -> Truncation: ...


class PlainTexts:
    """Reader of all texts or pairs of a request.

    Args:
        max_tokens: maximum length of a text in tokens, including special tokens.
        truncates: whether a text that exceeds the model's input loses tokens by default.
        reads_blank: whether a text may have no tokens.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_tokens: int,
        tracer: Tracer | None,
        *,
        truncates: bool,
        reads_blank: bool = False,
    ) -> None:
        self.read_one = TextReader(tokenizer, max_tokens).read_plain
        self._tracer = tracer
        self._truncates = truncates
        self._reads_blank = reads_blank

    async def read(self, inputs: Inputs[HasTruncation]) -> list[EncodedText | RejectedText]:
        def read(text: InputText, own: HasTruncation, name: str) -> EncodedText:
            chosen = own.truncation
            if chosen.truncate is None:
                chosen = chosen._replace(truncate=self._truncates)
            return self.read_one(text, name, chosen, blank=self._reads_blank)

        chars = sum(map(len, inputs.texts))
        return await tokenize(lambda: inputs.each(read), chars, self._tracer)
