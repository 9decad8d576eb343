"""The sparse task, which returns vectors over the vocabulary for the search of texts.

A vector is what SPLADE's pooling makes of the logits of all tokens (Formal et al. 2021). A model
may have a weight per token for queries, which then need no pass.

Shapes: V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fillmask.arrays import FloatArray
from fillmask.bundles.description import Sparse
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass, SparseVector
from fillmask.observability.tracing import Tracer
from fillmask.parameters.texts import InputText
from fillmask.tasks.plain_texts import PlainTexts
from fillmask.tasks.rejected import RejectedText
from fillmask.tasks.sparse.parameters import SparseOptions
from fillmask.tasks.sparse.results import SparseEmbedding
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, eq=False)
class PlannedVectors:
    """The texts of a request, ready to become passes, or vectors of queries that need none.

    Attributes:
        dimensions: maximum number of dimensions of each vector.
    """

    texts: Sequence[EncodedText | SparseVector | RejectedText]
    options: Sequence[SparseOptions]
    dimensions: Sequence[int]

    @property
    def passes(self) -> list[ModelPass]:
        return [
            ModelPass.for_vector(one.input_ids, one.token_types, most)
            for one, most in zip(self.texts, self.dimensions, strict=True)
            if isinstance(one, EncodedText)
        ]


class SparsePipeline:
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
        self._texts = PlainTexts(tokenizer, max_tokens, tracer, truncates=truncates)
        self._tokenizer = tokenizer
        self._batcher = batcher
        self._max_dimensions = min(sparse.max_active_dims or vocab_size, vocab_size)
        self._query_weights_V: FloatArray | None = None
        if sparse.query_weights is not None:
            self._query_weights_V = np.array(sparse.query_weights, np.float32)

    async def embed(
        self,
        texts: Sequence[InputText],
        options: Sequence[SparseOptions],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> list[SparseEmbedding | RejectedText]:
        return await self.run(await self.plan(texts, options, label, report_errors=report_errors))

    async def plan(
        self,
        texts: Sequence[InputText],
        options: Sequence[SparseOptions],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> PlannedVectors:
        """Tokenize texts. Arguments and errors are those of `read_each`."""
        encoded = await self._texts.read(texts, options, label, report_errors=report_errors)
        dimensions = [
            min(one.top_n or self._max_dimensions, self._max_dimensions) for one in options
        ]
        planned = [
            self._query_vector(one, most)
            if isinstance(one, EncodedText) and chosen.input_type == "query"
            else one
            for one, chosen, most in zip(encoded, options, dimensions, strict=True)
        ]
        return PlannedVectors(planned, options, dimensions)

    async def run(self, planned: PlannedVectors) -> list[SparseEmbedding | RejectedText]:
        """Return the vector of each planned text. The errors are the batcher's."""
        passes = planned.passes
        outputs = iter(await self._batcher.submit(passes) if passes else [])
        results: list[SparseEmbedding | RejectedText] = []
        for one, chosen in zip(planned.texts, planned.options, strict=True):
            if isinstance(one, RejectedText):
                results.append(one)
                continue
            vector = next(outputs).vector if isinstance(one, EncodedText) else one
            assert vector is not None  # noqa: S101 - the graph of this task has vectors
            kept = vector.values >= chosen.min_weight
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
        return SparseVector.from_weights(weights_V, most)
