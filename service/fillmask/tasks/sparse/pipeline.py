"""The sparse task, which returns vectors over the vocabulary for the search of texts.

A vector is what SPLADE's pooling makes of the logits of all tokens (Formal et al. 2021). A model
may have a weight per token for queries, which then need no pass.

Shapes: V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fillmask.arrays import FloatArray
from fillmask.bundles.description import Sparse
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass
from fillmask.observability.request_context import Tracer
from fillmask.tasks.classify.pipeline import PASS_BYTES
from fillmask.tasks.pipeline import HasTruncation, Inputs, Pipeline, PlainTexts, Size
from fillmask.tasks.result import RejectedText
from fillmask.tasks.sparse.parameters import InputType
from fillmask.tasks.sparse.results import SparseEmbedding, SparseVector
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer

# a dimension of a sparse vector in arrays, as Python objects, and as JSON with its token
_DIMENSION_BYTES, _DIMENSION_OBJECT_BYTES, _DIMENSION_JSON_BYTES = 12, 320, 40


def vectors_size(dimensions: int) -> Size:
    """Return the size of the JSON of vectors, with its objects.

    Args:
        dimensions: number of the actual dimensions of all vectors, because a trained model uses
            few of its own.
    """
    return Size(
        _DIMENSION_JSON_BYTES * dimensions,
        _DIMENSION_OBJECT_BYTES * dimensions,
        "Use fewer texts or a smaller top_n.",
    )


class SparseOptions(HasTruncation, Protocol):
    """What the pipeline reads of parameters. Other formats have other fields for it."""

    @property
    def input_type(self) -> InputType | None: ...

    @property
    def top_n(self) -> int | None: ...

    @property
    def min_weight(self) -> float | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class PlannedVectors:
    """The texts of a request, ready to become passes, or vectors of queries that need none.

    Attributes:
        dimensions: maximum number of dimensions of each vector.
    """

    texts: Sequence[EncodedText | SparseVector | RejectedText]
    parameters: Sequence[SparseOptions]
    dimensions: Sequence[int]

    is_large = False  # how many dimensions the vectors have shows only after the passes

    @property
    def size(self) -> Size:
        work_bytes = sum(
            PASS_BYTES + one.input_ids.nbytes + _DIMENSION_BYTES * most
            for one, most in zip(self.texts, self.dimensions, strict=True)
            if isinstance(one, EncodedText)
        )
        return Size(0, work_bytes, "")

    @property
    def passes(self) -> list[ModelPass]:
        return [
            # reduced on the worker's thread, because most weights are 0
            ModelPass.for_head(one.input_ids, one.token_types, "mean", SparseVector.reducer(most))
            for one, most in zip(self.texts, self.dimensions, strict=True)
            if isinstance(one, EncodedText)
        ]


class SparsePipeline(Pipeline[SparseOptions, PlannedVectors, SparseEmbedding]):
    """Pipeline that makes sparse vectors.

    Args:
        sparse: its weights of query tokens and its maximum number of dimensions.
        vocab_size: number of dimensions V.
        truncates: whether a text that exceeds the model's input loses its end by default.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        batcher: Batcher,
        sparse: Sparse,
        max_tokens: int,
        vocab_size: int,
        tracer: Tracer | None = None,
        *,
        truncates: bool = False,
    ) -> None:
        self._texts = PlainTexts(
            tokenizer, max_tokens, tracer, truncates=truncates, reads_blank=True
        )
        self._tokenizer = tokenizer
        self._batcher = batcher
        self._max_dimensions = min(sparse.max_active_dims or vocab_size, vocab_size)
        self._query_weights_V: FloatArray | None = None
        if sparse.query_weights is not None:
            self._query_weights_V = np.array(sparse.query_weights, np.float32)

    async def plan(self, inputs: Inputs[SparseOptions]) -> PlannedVectors:
        encoded = await self._texts.read(inputs)
        dimensions = [
            min(one.top_n or self._max_dimensions, self._max_dimensions)
            for one in inputs.parameters
        ]
        planned = [
            self._query_vector(one, most)
            if isinstance(one, EncodedText) and chosen.input_type == "query"
            else one
            for one, chosen, most in zip(encoded, inputs.parameters, dimensions, strict=True)
        ]
        return PlannedVectors(planned, inputs.parameters, dimensions)

    async def run(self, plan: PlannedVectors) -> list[SparseEmbedding | RejectedText]:
        passes = plan.passes
        outputs = iter(await self._batcher.submit(passes) if passes else [])
        results: list[SparseEmbedding | RejectedText] = []
        for one, chosen in zip(plan.texts, plan.parameters, strict=True):
            if isinstance(one, RejectedText):
                results.append(one)
                continue
            vector: SparseVector = next(outputs).pooled if isinstance(one, EncodedText) else one
            kept = vector.values >= (chosen.min_weight or 0.0)
            results.append(
                SparseEmbedding(
                    vector.indices[kept], vector.values[kept], self._tokenizer.vocabulary_token
                )
            )
        return results

    def _query_vector(self, text: EncodedText, most: int) -> EncodedText | SparseVector:
        """Return the weights of a query's tokens, or the query if it needs a pass."""
        if self._query_weights_V is None:
            return text
        weights_V = np.zeros_like(self._query_weights_V)
        weights_V[text.input_ids] = self._query_weights_V[text.input_ids]
        return SparseVector.reducer(most)(weights_V)
