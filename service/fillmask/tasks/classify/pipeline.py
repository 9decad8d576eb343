"""The text-classification task, which returns the labels of texts with their scores."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from fillmask.arrays import FloatArray, check_finite
from fillmask.bundles.description import Classification
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass
from fillmask.observability.tracing import Tracer
from fillmask.parameters.texts import InputText
from fillmask.tasks.classify.parameters import ClassificationOptions, FunctionToApply
from fillmask.tasks.classify.results import ClassificationResult, LabelScore
from fillmask.tasks.event_loop import is_large
from fillmask.tasks.plain_texts import PlainTexts
from fillmask.tasks.rejected import RejectedText
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer

# functions of transformers' text-classification pipeline by problem type
_DEFAULT_FUNCTIONS: dict[str, FunctionToApply] = {
    "single_label_classification": "softmax",
    "multi_label_classification": "sigmoid",
    "regression": "none",
}
# creating and serializing a label's score takes about as long as copying this many characters
_SCORE_COST_CHARS = 45


@dataclass(frozen=True, slots=True, eq=False)
class PlannedLabels:
    """The texts of a request, ready to become passes.

    Attributes:
        counts: number of labels to return for each text.
        names: all labels of the model.
        is_large: true if ranking or serializing takes too long for the event loop.
    """

    texts: Sequence[EncodedText | RejectedText]
    options: Sequence[ClassificationOptions]
    counts: Sequence[int]
    names: tuple[str, ...]
    is_large: bool

    @property
    def encoded(self) -> list[EncodedText]:
        return [one for one in self.texts if isinstance(one, EncodedText)]


class ClassificationPipeline:
    """Pipeline that classifies texts.

    Args:
        truncates: whether a text that exceeds the model's input loses tokens by default.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        batcher: Batcher,
        head: Classification,
        max_tokens: int,
        tracer: Tracer | None = None,
        *,
        truncates: bool = False,
    ) -> None:
        self._texts = PlainTexts(tokenizer, max_tokens, tracer, truncates=truncates)
        self._batcher = batcher
        self._head = head
        longest = sorted((len(name) + _SCORE_COST_CHARS for name in head.labels), reverse=True)
        # the cost of the k labels with the longest names, by k
        self._cost_chars = (0, *accumulate(longest))

    async def classify(
        self,
        texts: Sequence[InputText],
        options: Sequence[ClassificationOptions],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> ClassificationResult:
        return await self.run(await self.plan(texts, options, label, report_errors=report_errors))

    async def plan(
        self,
        texts: Sequence[InputText],
        options: Sequence[ClassificationOptions],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> PlannedLabels:
        """Tokenize texts. Arguments and errors are those of `read_each`."""
        encoded = await self._texts.read(texts, options, label, report_errors=report_errors)
        names = self._head.labels
        counts = [
            len(names) if one.top_k is None else min(one.top_k, len(names)) for one in options
        ]
        ranked = len(names) * sum(isinstance(one, EncodedText) for one in encoded)
        cost_chars = sum(self._cost_chars[count] for count in counts)
        return PlannedLabels(encoded, options, counts, names, is_large(ranked, cost_chars))

    async def run(self, planned: PlannedLabels) -> ClassificationResult:
        """Return the labels of each planned text, best first. The errors are the batcher's."""
        large = planned.is_large
        logits = await self._logits(planned.encoded, bulk=large)
        if large:
            return ClassificationResult(await asyncio.to_thread(self._rank, planned, logits), large)
        return ClassificationResult(self._rank(planned, logits), large)

    async def logits(self, texts: Sequence[InputText]) -> list[FloatArray]:
        """Return the logits (L,) of each text."""
        return await self._logits([self._texts.read_one(text, "inputs") for text in texts])

    async def _logits(
        self, texts: Sequence[EncodedText], *, bulk: bool = False
    ) -> list[FloatArray]:
        passes = [
            ModelPass.for_labels(one.input_ids, one.token_types, self._head.pooling)
            for one in texts
        ]
        outputs = await self._batcher.submit(passes, bulk=bulk) if passes else []
        return [output.label_logits[0] for output in outputs]

    def _rank(
        self, planned: PlannedLabels, logits: Sequence[FloatArray]
    ) -> list[list[LabelScore] | RejectedText]:
        remaining = iter(logits)
        return [
            one
            if isinstance(one, RejectedText)
            else self._rank_labels(next(remaining), chosen.function_to_apply, count)
            for one, chosen, count in zip(
                planned.texts, planned.options, planned.counts, strict=True
            )
        ]

    def _rank_labels(
        self, logits_L: FloatArray, function: FunctionToApply | None, count: int
    ) -> list[LabelScore]:
        check_finite(logits_L)
        default = _DEFAULT_FUNCTIONS[self._head.problem_type]
        scores_L = _apply(function or default, logits_L.astype(np.float64))
        best = np.argsort(-scores_L, kind="stable")[:count]
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
