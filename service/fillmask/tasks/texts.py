"""The texts of a request: read on the event loop, or on another thread if they take too long.

Work below these bounds takes at most 0.3 ms. A switch to another thread and back takes 0.03 ms.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from fillmask.observability.request_context import Tracer, timed_tokenization
from fillmask.parameters.texts import InputText, Truncation
from fillmask.tasks.pipeline import Inputs
from fillmask.tasks.result import RejectedText
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer

# number of targets or labels to sort
LARGE_RANKING = 5_000
# number of characters of results to create and to serialize
LARGE_RESULT_CHARS = 100_000

T = TypeVar("T")


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
