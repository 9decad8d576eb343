"""Tokenization of the texts of a request for tasks without masks."""

from collections.abc import Sequence
from dataclasses import replace

from fillmask.observability.tracing import Tracer
from fillmask.parameters.texts import InputText, TruncationOptions
from fillmask.tasks.event_loop import read_each, tokenize
from fillmask.tasks.rejected import RejectedText
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.tokenizer import Tokenizer


class PlainTexts:
    """Reader of all texts or pairs of a request.

    Args:
        max_tokens: maximum length of a text in tokens, including special tokens.
        truncates: whether a text that exceeds the model's input loses tokens by default.
    """

    def __init__(
        self, tokenizer: Tokenizer, max_tokens: int, tracer: Tracer | None, *, truncates: bool
    ) -> None:
        self.read_one = TextReader(tokenizer, max_tokens).read_plain
        self._tracer = tracer
        self._truncates = truncates

    async def read(
        self,
        texts: Sequence[InputText],
        options: Sequence[TruncationOptions],
        label: str,
        *,
        report_errors: bool,
    ) -> list[EncodedText | RejectedText]:
        def read(text: InputText, own: TruncationOptions, name: str) -> EncodedText:
            chosen = replace(own, truncate=self._truncates) if own.truncate is None else own
            return self.read_one(text, name, chosen)

        return await tokenize(
            lambda: read_each(read, texts, options, label, report_errors=report_errors),
            sum(map(len, texts)),
            self._tracer,
        )
