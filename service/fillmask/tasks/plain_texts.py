"""Tokenization of the texts of a request for tasks without masks."""

from collections.abc import Sequence
from typing import Protocol

from fillmask.observability.tracing import Tracer
from fillmask.parameters.texts import InputText, Truncation
from fillmask.tasks.event_loop import read_each, tokenize
from fillmask.tasks.result import RejectedText
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.tokenizer import Tokenizer


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

    async def read(
        self,
        texts: Sequence[InputText],
        parameters: Sequence[HasTruncation],
        label: str,
        *,
        report_errors: bool,
    ) -> list[EncodedText | RejectedText]:
        def read(text: InputText, own: HasTruncation, name: str) -> EncodedText:
            chosen = own.truncation
            if chosen.truncate is None:
                chosen = chosen._replace(truncate=self._truncates)
            return self.read_one(text, name, chosen, blank=self._reads_blank)

        return await tokenize(
            lambda: read_each(read, texts, parameters, label, report_errors=report_errors),
            sum(map(len, texts)),
            self._tracer,
        )
