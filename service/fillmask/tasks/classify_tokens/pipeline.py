"""The task classify-tokens, which returns the entities of texts: names, places and so on.

Shapes: T tokens of a text with special tokens, t without them, L labels.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from fillmask.arrays import FloatArray, check_finite
from fillmask.engine.passes import ModelPass
from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.limits import told_passes
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tasks.classify.pipeline import PASS_BYTES
from fillmask.tasks.classify_tokens.parameters import DEFAULT_IGNORED, ClassifyTokensParameters
from fillmask.tasks.classify_tokens.results import Entity
from fillmask.tasks.classify_tokens.spans import (
    LabelledTokens,
    labelled_runs,
    log_softmax,
    tag_of,
    words_of,
)
from fillmask.tasks.pipeline import Inputs, Parts, Pipeline, Size, is_large, tokenize
from fillmask.tasks.result import RejectedText, accepted
from fillmask.tokenization.encoded_tokens import EncodedTokens
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.windows import TokenWindow

# an entity as an object, and as JSON without its word and its label
_ENTITY_BYTES, _ENTITY_JSON_BYTES = 400, 110
# JSON of a byte of a text in the names of its tokens, such as those of byte-level BPE
_NAME_JSON_BYTES = 3
# creating and serializing an entity takes about as long as copying this many characters
_ENTITY_COST_CHARS = 150
_LOGIT_BYTES = 12  # as float32 and as a float64 probability


@dataclass(frozen=True, slots=True, eq=False)
class TokenPlan:
    """A tokenized text with its parameters.

    Attributes:
        windows: one or more parts of the text, which the model reads.
    """

    text: InputText
    parameters: ClassifyTokensParameters
    tokens: EncodedTokens
    windows: Sequence[TokenWindow]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedTokens:
    """The texts of a request, ready to become passes.

    Attributes:
        label_bytes: JSON of the longest label.
        labels: number L of labels.
    """

    texts: Sequence[TokenPlan | RejectedText]
    label_bytes: int
    labels: int

    @property
    def plans(self) -> list[TokenPlan]:
        return accepted(self.texts)

    @property
    def windows(self) -> list[TokenWindow]:
        return [window for plan in self.plans for window in plan.windows]

    @property
    def is_large(self) -> bool:
        return is_large(0, _ENTITY_COST_CHARS * sum(len(one.tokens.names) for one in self.plans))

    @property
    def size(self) -> Size:
        tokens = sum(len(plan.tokens.names) for plan in self.plans)
        text_bytes = sum(len(to_json(str(plan.text))) for plan in self.plans)
        return Size(
            tokens * (_ENTITY_JSON_BYTES + self.label_bytes) + _NAME_JSON_BYTES * text_bytes,
            tokens * (_ENTITY_BYTES + _LOGIT_BYTES * self.labels)
            + sum(PASS_BYTES + window.input_ids.nbytes for window in self.windows),
            "Use fewer or shorter texts.",
        )


class TokenPipeline(Pipeline[ClassifyTokensParameters, PlannedTokens, list[Entity]]):
    """Pipeline that labels tokens and joins them to entities."""

    def __init__(self, parts: Parts) -> None:
        head = parts.bundle.token_classification
        assert head is not None  # noqa: S101 - a bundle of this task has a head
        self._labels = head.labels
        self._label_bytes = max(len(to_json(label)) for label in head.labels)
        self._join = parts.tokenizer.detokenizer.join_names
        self._reader = TextReader(parts.tokenizer, parts.bundle.max_tokens)
        self._batcher = parts.batcher
        self._max_passes = parts.max_passes
        self._tracer = parts.tracer

    def check(self, parameters: ClassifyTokensParameters) -> None:
        if not parameters.ignore_labels:
            return
        labels = self._labels
        if parameters.aggregation_strategy != "none":
            labels = tuple(dict.fromkeys(map(tag_of, labels)))
        for label in parameters.ignore_labels:
            if label not in {*labels, *DEFAULT_IGNORED}:
                raise InvalidRequestError(
                    f"ignore_labels must have only labels of the answer, {', '.join(labels)} "
                    f"(got {quote(label)})."
                )

    async def plan(self, inputs: Inputs[ClassifyTokensParameters]) -> PlannedTokens:
        """Tokenize texts, and divide those that exceed the model's input."""

        def read(text: InputText, own: ClassifyTokensParameters, name: str) -> TokenPlan:
            self.check(own)
            windowed = own.on_long_text == "window"
            return TokenPlan(text, own, *self._reader.read_tokens(text, name, windowed=windowed))

        chars = sum(map(len, inputs.texts))
        texts = await tokenize(lambda: inputs.each(read), chars, self._tracer)
        planned = PlannedTokens(texts, self._label_bytes, len(self._labels))
        further = sum(len(plan.windows) - 1 for plan in planned.plans)
        if further > self._max_passes:
            raise InvalidRequestError(
                f"{inputs.label} needs {further} further passes of the model for long texts; the "
                f"limit is {told_passes(self._max_passes)}. Use fewer or shorter texts."
            )
        return planned

    async def run(self, plan: PlannedTokens) -> list[list[Entity] | RejectedText]:
        """Return the entities of each planned text, in the order of the text."""
        passes = list(map(_pass_of, plan.windows))
        outputs = await self._batcher.submit(passes, bulk=plan.is_large) if passes else []
        logits = [output.pooled for output in outputs]
        if plan.is_large:
            return await asyncio.to_thread(self._results, plan, logits)
        return self._results(plan, logits)

    async def log_probs(self, text: InputText) -> NDArray[np.float64]:
        """Return the log-probability (T, L) of each label at each token."""
        _, [window] = self._reader.read_tokens(text, "inputs", windowed=False)
        [output] = await self._batcher.submit([_pass_of(window)])
        return log_softmax(output.pooled)

    def _results(
        self, planned: PlannedTokens, logits: Sequence[FloatArray]
    ) -> list[list[Entity] | RejectedText]:
        remaining = iter(logits)
        results: list[list[Entity] | RejectedText] = []
        for plan in planned.texts:
            if isinstance(plan, RejectedText):
                results.append(plan)
                continue
            logits_tL = np.concatenate([next(remaining)[one.kept] for one in plan.windows])
            check_finite(logits_tL)
            results.append(self._entities(plan, np.exp(log_softmax(logits_tL))))
        return results

    def _entities(self, plan: TokenPlan, scores_tL: NDArray[np.float64]) -> list[Entity]:
        encoded, own = plan.tokens, plan.parameters
        positions = encoded.positions.tolist()
        tokens = LabelledTokens(positions, encoded.names, encoded.spans, scores_tL)
        if not isinstance(plan.text, TextPair):
            return self._aggregate(tokens, encoded.continues, own)
        first, shift = int((encoded.parts == 0).sum()), plan.text.second_start
        # no entity is in both parts
        ours = self._aggregate(tokens.part(0, first), encoded.continues[:first], own)
        theirs = tokens.part(first, len(positions))
        return [replace(one, part="text") for one in ours] + [
            replace(one, part="text_pair", start=one.start - shift, end=one.end - shift)
            for one in self._aggregate(theirs, encoded.continues[first:], own)
        ]

    def _aggregate(
        self,
        tokens: LabelledTokens,
        continues: Sequence[bool],
        parameters: ClassifyTokensParameters,
    ) -> list[Entity]:
        given = parameters.ignore_labels
        ignored = frozenset(DEFAULT_IGNORED if given is None else given)
        strategy = parameters.aggregation_strategy or "simple"
        if strategy in {"first", "average", "max"}:
            tokens = words_of(tokens, continues, strategy, self._join)
        best = tokens.scores.argmax(axis=1).tolist()
        labels, scores = [self._labels[label] for label in best], tokens.scores.max(axis=1).tolist()
        if strategy == "none":
            columns = (labels, scores, tokens.indices, tokens.names, tokens.spans)
            return [
                Entity(None, label, score, index, name, *span)
                for label, score, index, name, span in zip(*columns, strict=True)
                if label not in ignored
            ]
        return [
            Entity(
                tag,
                None,
                sum(scores[start:end]) / (end - start),
                None,
                self._join(tokens.names[start:end]),
                tokens.spans[start][0],
                tokens.spans[end - 1][1],
            )
            for tag, start, end in labelled_runs(labels)
            if tag not in ignored
        ]


def _pass_of(window: TokenWindow) -> ModelPass:
    return ModelPass.for_head(window.input_ids, window.token_types, "tokens")
