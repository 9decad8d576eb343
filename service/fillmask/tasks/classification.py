"""The text-classification task, which returns the labels of texts with their scores."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from fillmask.arrays import FloatArray
from fillmask.bundles.description import Classification
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass
from fillmask.errors import InvalidRequestError
from fillmask.observability.tracing import Tracer
from fillmask.parameters.classify import ClassificationOptions, FunctionToApply
from fillmask.parameters.texts import InputText
from fillmask.results.labels import ClassificationResult, LabelScore
from fillmask.results.rejected import RejectedText
from fillmask.tasks.response_size import (
    JSON_COPIES,
    LARGE_RANKING,
    LARGE_RESPONSE_CHARS,
    MAX_RESPONSE_BYTES,
    Reserve,
    reserve_nothing,
)
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.reader import TextReader, text_label
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer

# functions of transformers' text-classification pipeline by problem type
_DEFAULT_FUNCTIONS: dict[str, FunctionToApply] = {
    "single_label_classification": "softmax",
    "multi_label_classification": "sigmoid",
    "regression": "none",
}
# one pass with its queue entry and its arrays, and the logit of a label
_PASS_BYTES, _LOGIT_BYTES = 2_000, 4
# a label's score as an object, and as JSON without its name
_SCORE_BYTES, _FRAME_BYTES = 90, 45


class ClassificationPipeline:
    """Pipeline that classifies texts.

    Args:
        head: labels, problem type and pooling of the classification head.
        max_tokens: maximum length of a text in tokens, including special tokens.
        tracer: tracer that records a span for tokenization. The batcher records its own spans.
        max_response_bytes: maximum size of a request's labels as JSON.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        batcher: Batcher,
        head: Classification,
        max_tokens: int,
        tracer: Tracer | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self._max_bytes = max_response_bytes
        self._reader = TextReader(tokenizer, max_tokens)
        self._batcher = batcher
        self._head = head
        self._tracer = tracer
        longest = sorted((len(to_json(name)) + _FRAME_BYTES for name in head.labels), reverse=True)
        # the JSON size of the k labels with the longest names, by k
        self._json_bytes = (0, *accumulate(longest))

    async def classify(
        self,
        texts: Sequence[InputText],
        options: Sequence[ClassificationOptions],
        label: str = "inputs",
        *,
        report_errors: bool = False,
        reserve: Reserve = reserve_nothing,
    ) -> ClassificationResult:
        """Return the labels of each text, best first.

        Args:
            texts: one or more texts or pairs.
            label: the client's name for the texts, for error messages.
            report_errors: True if the result contains the errors of invalid texts.
            reserve: function that reserves the request's memory before the first pass.

        Raises:
            InvalidRequestError: the response can exceed `max_response_bytes`. Without
                `report_errors`, an invalid text also raises this error.
            FillMaskError: the batcher rejects the passes, or `reserve` rejects the request.
        """
        labels = [self._label_count(chosen) for chosen in options]
        json_bytes = sum(self._json_bytes[count] for count in labels)
        if json_bytes > self._max_bytes:
            raise InvalidRequestError(
                f"The response could have {json_bytes} bytes; the limit is "
                f"{self._max_bytes}. Use fewer texts or a smaller top_k."
            )
        if sum(map(len, texts)) < LONG_TEXT_CHARS:
            encoded = self._tokenize_all(texts, label, report_errors=report_errors)
        else:
            encoded = await asyncio.to_thread(
                self._tokenize_all, texts, label, report_errors=report_errors
            )
        accepted = [one for one in encoded if isinstance(one, EncodedText)]
        text_bytes = _PASS_BYTES + _LOGIT_BYTES * len(self._head.labels)
        reserve(
            sum(text_bytes + one.input_ids.nbytes for one in accepted)
            + _SCORE_BYTES * sum(labels)
            + JSON_COPIES * json_bytes
        )
        ranked = len(accepted) * len(self._head.labels)
        is_large = ranked > LARGE_RANKING or json_bytes > LARGE_RESPONSE_CHARS
        logits = await self._logits(accepted, bulk=is_large)
        arguments = (encoded, logits, options)
        if is_large:
            return ClassificationResult(await asyncio.to_thread(self._rank, *arguments), is_large)
        return ClassificationResult(self._rank(*arguments), is_large)

    async def logits(self, texts: Sequence[InputText]) -> list[FloatArray]:
        """Return the logits of each text, one per label.

        Raises:
            FillMaskError: a text is invalid, or the batcher rejects the passes.
        """
        return await self._logits([self._reader.read_plain(text, "inputs") for text in texts])

    async def _logits(
        self, texts: Sequence[EncodedText], *, bulk: bool = False
    ) -> list[FloatArray]:
        passes = [
            ModelPass.for_labels(one.input_ids, one.token_types, self._head.pooling)
            for one in texts
        ]
        outputs = await self._batcher.submit(passes, bulk=bulk) if passes else []
        return [output.label_logits[0] for output in outputs]

    @property
    def _tokenize_all(self) -> Callable[..., list[EncodedText | RejectedText]]:
        # This is a property, because an attribute with a bound method of its own object is a
        # reference cycle. A pipeline with such a cycle outlives the model.
        tokenize = self._tokenize
        return tokenize if self._tracer is None else self._tracer.traced("tokenize", tokenize)

    def _tokenize(
        self, texts: Sequence[InputText], label: str, *, report_errors: bool
    ) -> list[EncodedText | RejectedText]:
        encoded: list[EncodedText | RejectedText] = []
        for index, text in enumerate(texts):
            try:
                encoded.append(self._reader.read_plain(text, text_label(label, index, texts)))
            except InvalidRequestError as error:
                if not report_errors:
                    raise
                encoded.append(RejectedText(error.text))
        return encoded

    def _label_count(self, options: ClassificationOptions) -> int:
        labels = len(self._head.labels)
        return labels if options.top_k is None else min(options.top_k, labels)

    def _rank(
        self,
        encoded: Sequence[EncodedText | RejectedText],
        logits: Sequence[FloatArray],
        options: Sequence[ClassificationOptions],
    ) -> list[list[LabelScore] | RejectedText]:
        remaining = iter(logits)
        return [
            one if isinstance(one, RejectedText) else self._rank_labels(next(remaining), chosen)
            for one, chosen in zip(encoded, options, strict=True)
        ]

    def _rank_labels(
        self, logits_L: FloatArray, options: ClassificationOptions
    ) -> list[LabelScore]:
        if not np.isfinite(logits_L).all():
            raise ValueError("the model returns NaN or infinity; export its bundle again")
        function = options.function_to_apply or _DEFAULT_FUNCTIONS[self._head.problem_type]
        scores_L = _apply(function, logits_L.astype(np.float64))
        best = np.argsort(-scores_L, kind="stable")[: self._label_count(options)]
        return [LabelScore(self._head.labels[i], float(scores_L[i])) for i in best.tolist()]


def _apply(function: FunctionToApply, logits_L: NDArray[np.float64]) -> NDArray[np.float64]:
    if function == "none":
        return logits_L
    if function == "sigmoid":
        # the exponential of a negative number cannot overflow
        powers_L = np.exp(-np.abs(logits_L))
        scores_L: NDArray[np.float64] = np.where(logits_L >= 0, 1, powers_L) / (1 + powers_L)
    else:
        powers_L = np.exp(logits_L - logits_L.max())
        scores_L = powers_L / powers_L.sum()
    return scores_L
