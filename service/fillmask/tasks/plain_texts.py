"""Tokenization of the texts of a request for tasks without masks."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from fillmask.errors import InvalidRequestError
from fillmask.observability.request_times import timed_tokenization
from fillmask.observability.tracing import Tracer
from fillmask.parameters.texts import InputText, TruncationOptions
from fillmask.results.rejected import RejectedText
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.reader import TextReader, text_label
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer


class PlainTexts:
    """Reader of all texts of a request, on another thread if they are long.

    Args:
        max_tokens: maximum length of a text in tokens, including special tokens.
        tracer: tracer that records a span.
        truncates: whether a text that exceeds the model's input loses tokens by default.
    """

    def __init__(
        self, tokenizer: Tokenizer, max_tokens: int, tracer: Tracer | None, *, truncates: bool
    ) -> None:
        self._reader = TextReader(tokenizer, max_tokens)
        self._tracer = tracer
        self._truncates = truncates

    def read_one(self, text: InputText, label: str) -> EncodedText:
        """Tokenize one text.

        Raises:
            InvalidRequestError: the text is invalid.
        """
        return self._reader.read_plain(text, label)

    async def read(
        self,
        texts: Sequence[InputText],
        options: Sequence[TruncationOptions],
        label: str,
        *,
        report_errors: bool,
    ) -> list[EncodedText | RejectedText]:
        """Tokenize texts or pairs.

        Args:
            options: what becomes of each text that exceeds the model's input.
            label: the client's name for the texts, for error messages.
            report_errors: True if the result contains the errors of invalid texts.

        Raises:
            InvalidRequestError: a text is invalid, without `report_errors`.
        """
        if sum(map(len, texts)) < LONG_TEXT_CHARS:
            return self._read_all(texts, options, label, report_errors=report_errors)
        return await asyncio.to_thread(
            self._read_all, texts, options, label, report_errors=report_errors
        )

    @property
    def _read_all(self) -> Callable[..., list[EncodedText | RejectedText]]:
        # This is a property, because an attribute with a bound method of its own object is a
        # reference cycle. A pipeline with such a cycle outlives the model.
        read = self._read_each
        return read if self._tracer is None else self._tracer.traced("tokenize", read)

    @timed_tokenization
    def _read_each(
        self,
        texts: Sequence[InputText],
        options: Sequence[TruncationOptions],
        label: str,
        *,
        report_errors: bool,
    ) -> list[EncodedText | RejectedText]:
        encoded: list[EncodedText | RejectedText] = []
        for index, (text, own) in enumerate(zip(texts, options, strict=True)):
            name = text_label(label, index, texts)
            chosen = replace(own, truncate=self._truncates) if own.truncate is None else own
            try:
                encoded.append(self._reader.read_plain(text, name, chosen))
            except InvalidRequestError as error:
                if not report_errors:
                    raise
                encoded.append(RejectedText(error.text))
        return encoded
