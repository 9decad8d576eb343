"""Calls of the Python library, which run a task on one text or on many."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from fillmask.errors import InvalidRequestError
from fillmask.parameters.call import read_call
from fillmask.parameters.classify import ClassifyParameters
from fillmask.parameters.fill_mask import FillMaskParameters
from fillmask.parameters.rerank import classify_keywords, read_pairs, read_top_n
from fillmask.parameters.score import ScoreParameters
from fillmask.parameters.sparse import SparseParameters
from fillmask.parameters.validation import TaskParameters
from fillmask.registry.served_model import ServedModel
from fillmask.results.ranks import RankedText, rank_texts
from fillmask.results.rejected import RejectedText
from fillmask.results.scores import rank_scores
from fillmask.tasks.feed import QueueFeed


class Calls:
    """Calls of the tasks of a model. All methods run on the loop of the model.

    Args:
        batch_tokens: token budget of one batch, times the number of workers.
    """

    def __init__(self, model: ServedModel, batch_tokens: int) -> None:
        self._model = model
        self._batch_tokens = batch_tokens

    async def fill(self, *arguments: Any) -> Any:
        """Return the fills of the masks of each text."""
        pipeline = self._model.require_fill_mask()

        async def run(text: Any, options: Any, label: str, *, report: bool) -> Any:
            result = await pipeline.fill([text], options, label, report_errors=report)
            return result.of_text(0)

        return await self._run(FillMaskParameters, run, *arguments)

    async def score(self, *arguments: Any) -> Any:
        """Return the score of each text."""
        pipeline = self._model.require_scoring()

        async def run(text: Any, options: Any, label: str, *, report: bool) -> Any:
            [score] = await pipeline.score([text], [options], label, report_errors=report)
            return score

        scores = await self._run(ScoreParameters, run, *arguments)
        return rank_scores(scores) if isinstance(scores, list) else scores

    async def classify(self, *arguments: Any) -> Any:
        """Return the labels of each text."""
        pipeline = self._model.require_classification()

        async def run(text: Any, options: Any, label: str, *, report: bool) -> Any:
            result = await pipeline.classify([text], [options], label, report_errors=report)
            return result.labels[0]

        return await self._run(ClassifyParameters, run, *arguments)

    async def embed_sparse(self, *arguments: Any) -> Any:
        """Return the sparse vector of each text."""
        pipeline = self._model.require_sparse()

        async def run(text: Any, options: Any, label: str, *, report: bool) -> Any:
            [vector] = await pipeline.embed([text], [options], label, report_errors=report)
            return vector

        return await self._run(SparseParameters, run, *arguments)

    async def rerank(
        self, query: str, texts: Iterable[str], *, top_n: int | None = None, **flags: Any
    ) -> list[RankedText]:
        """Return texts by their relevance to a query."""
        self._model.require_reranking()
        most, options = read_top_n(top_n), classify_keywords(**flags)
        pairs = read_pairs(query, texts)
        return rank_texts(await self.classify(pairs, options), most) if pairs else []

    async def _run(
        self,
        model: type[TaskParameters],
        run: Callable[..., Awaitable[Any]],
        inputs: object,
        options: Mapping[str, Any],
    ) -> Any:
        """Run a task on one text or on many, with full batches and in bounded memory."""

        async def run_one(index: int) -> Any:
            text, own = call.texts[index], call.options[index]
            return await run(text, own, call.label(index), report=call.report_errors)

        with self._model.in_use:
            call = read_call(model, inputs, options, self._model.info.limits)
            feed = QueueFeed(self._model.batcher, self._batch_tokens)
            results = await feed.map(run_one, range(len(call.texts)))
        if not call.single:
            return results
        if isinstance(results[0], RejectedText):
            raise InvalidRequestError(results[0].error)
        return results[0]
