"""The text-classification task, which returns the labels of texts with their scores."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from fillmask.arrays import FloatArray, check_finite
from fillmask.bundles.description import Classification
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass
from fillmask.observability.request_context import Tracer
from fillmask.parameters.texts import InputText
from fillmask.tasks.classify.parameters import FunctionToApply
from fillmask.tasks.classify.results import LabelScore
from fillmask.tasks.pipeline import (
    HasTruncation,
    Inputs,
    Pipeline,
    PlainTexts,
    Size,
    is_large,
    largest_sums,
)
from fillmask.tasks.result import RejectedText, accepted
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
# one pass with its queue entry and its arrays, and the logit of a label
PASS_BYTES, _LOGIT_BYTES = 2_000, 4
# a label's score as an object, and as JSON without its name
_LABEL_BYTES, _LABEL_JSON_BYTES = 90, 45


class ClassifyOptions(HasTruncation, Protocol):
    """What the pipeline reads of parameters. Other formats have other fields for it."""

    @property
    def top_k(self) -> int | None: ...

    @property
    def function_to_apply(self) -> FunctionToApply | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class PlannedLabels:
    """The texts of a request, ready to become passes.

    Attributes:
        counts: number of labels to return for each text.
        names: all labels of the model.
        is_large: true if ranking or serializing takes too long for the event loop.
    """

    texts: Sequence[EncodedText | RejectedText]
    parameters: Sequence[ClassifyOptions]
    counts: Sequence[int]
    names: tuple[str, ...]
    is_large: bool

    @property
    def encoded(self) -> list[EncodedText]:
        return accepted(self.texts)

    @property
    def size(self) -> Size:
        by_count = _json_bytes(self.names)
        pass_bytes = PASS_BYTES + _LOGIT_BYTES * len(self.names)
        return Size(
            sum(by_count[count] for count in self.counts),
            sum(pass_bytes + one.input_ids.nbytes for one in self.encoded)
            + _LABEL_BYTES * sum(self.counts),
            "Use fewer texts or a smaller top_k.",
        )


@lru_cache(maxsize=32)  # models with labels in a process
def _json_bytes(names: tuple[str, ...]) -> Sequence[int]:
    """Return the JSON size of the k labels with the longest names, by k."""
    return largest_sums(len(to_json(name)) + _LABEL_JSON_BYTES for name in names)


class ClassificationPipeline(Pipeline[ClassifyOptions, PlannedLabels, list[LabelScore]]):
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
        self._cost_chars = largest_sums(len(name) + _SCORE_COST_CHARS for name in head.labels)

    async def plan(self, inputs: Inputs[ClassifyOptions]) -> PlannedLabels:
        encoded = await self._texts.read(inputs)
        names = self._head.labels
        counts = [
            len(names) if one.top_k is None else min(one.top_k, len(names))
            for one in inputs.parameters
        ]
        ranked = len(names) * sum(isinstance(one, EncodedText) for one in encoded)
        cost_chars = sum(self._cost_chars[count] for count in counts)
        return PlannedLabels(
            encoded, inputs.parameters, counts, names, is_large(ranked, cost_chars)
        )

    async def run(self, plan: PlannedLabels) -> list[list[LabelScore] | RejectedText]:
        """Return the labels of each planned text, best first."""
        logits = await self._logits(plan.encoded, bulk=plan.is_large)
        if plan.is_large:
            return await asyncio.to_thread(self._rank, plan, logits)
        return self._rank(plan, logits)

    async def logits(self, texts: Sequence[InputText]) -> list[FloatArray]:
        """Return the logits (L,) of each text."""
        return await self._logits([self._texts.read_one(text, "inputs") for text in texts])

    async def _logits(
        self, texts: Sequence[EncodedText], *, bulk: bool = False
    ) -> list[FloatArray]:
        passes = [
            ModelPass.for_head(one.input_ids, one.token_types, self._head.pooling) for one in texts
        ]
        outputs = await self._batcher.submit(passes, bulk=bulk) if passes else []
        return [output.pooled for output in outputs]

    def _rank(
        self, planned: PlannedLabels, logits: Sequence[FloatArray]
    ) -> list[list[LabelScore] | RejectedText]:
        remaining = iter(logits)
        return [
            one
            if isinstance(one, RejectedText)
            else self._rank_labels(next(remaining), chosen.function_to_apply, count)
            for one, chosen, count in zip(
                planned.texts, planned.parameters, planned.counts, strict=True
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
