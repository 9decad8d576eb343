"""Calls of the Python library, which run a task on one text or on many."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fillmask.errors import InvalidRequestError
from fillmask.parameters.call import Call, read_call, to_list
from fillmask.parameters.classify import ClassifyParameters
from fillmask.parameters.fill_mask import FillMaskParameters
from fillmask.parameters.rerank import RerankParameters
from fillmask.parameters.score import ScoreParameters
from fillmask.parameters.sparse import SparseParameters
from fillmask.parameters.validation import TaskParameters, ValidationContext
from fillmask.registry.served_model import ServedModel
from fillmask.results.ranks import rank_texts
from fillmask.results.rejected import RejectedText
from fillmask.results.scores import rank_scores
from fillmask.tasks.feed import QueueFeed
from fillmask.tokenization.reader import text_label


class Calls:
    """Calls of the tasks of a model.

    A method reads its arguments, which may run code of the caller such as a generator. It returns
    a coroutine for the loop of the model, which runs no such code.

    Args:
        batch_tokens: token budget of one batch, times the number of workers.
    """

    def __init__(self, model: ServedModel, batch_tokens: int) -> None:
        self._model = model
        self._batch_tokens = batch_tokens

    def fill(self, *arguments: Any) -> Coroutine[Any, Any, Any]:
        """Return the fills of the masks of each text."""
        pipeline = self._model.require_fill_mask()

        async def run(text: Any, options: Any, label: str, *, report: bool) -> Any:
            result = await pipeline.fill([text], options, label, report_errors=report)
            return result.of_text(0)

        return self._run(self._read(FillMaskParameters, *arguments), run)

    def score(self, *arguments: Any) -> Coroutine[Any, Any, Any]:
        """Return the score of each text."""
        pipeline = self._model.require_scoring()

        async def run(text: Any, options: Any, label: str, *, report: bool) -> Any:
            [score] = await pipeline.score([text], [options], label, report_errors=report)
            return score

        return self._run(self._read(ScoreParameters, *arguments), run, rank_scores)

    def classify(self, *arguments: Any) -> Coroutine[Any, Any, Any]:
        """Return the labels of each text."""
        self._model.require_classification()
        return self._run(self._read(ClassifyParameters, *arguments), self._labels)

    def embed_sparse(self, *arguments: Any) -> Coroutine[Any, Any, Any]:
        """Return the sparse vector of each text."""
        pipeline = self._model.require_sparse()

        async def run(text: Any, options: Any, label: str, *, report: bool) -> Any:
            [vector] = await pipeline.embed([text], [options], label, report_errors=report)
            return vector

        return self._run(self._read(SparseParameters, *arguments), run)

    def rerank(
        self, query: object, texts: object, options: Mapping[str, Any]
    ) -> Coroutine[Any, Any, Any]:
        """Return texts by their relevance to a query."""
        self._model.require_reranking()
        given = {"query": query, "texts": to_list(texts), **options}
        read = RerankParameters.read(given, ValidationContext(self._model.info.limits))
        call = Call(read.pairs, [read.options] * len(read.texts), field="texts")
        return self._run(call, self._labels, lambda labels: rank_texts(labels, read.top_n))

    async def _labels(self, text: Any, options: Any, label: str, *, report: bool) -> Any:
        pipeline = self._model.require_classification()
        result = await pipeline.classify([text], [options], label, report_errors=report)
        return result.labels[0]

    def _read(self, model: type[TaskParameters], inputs: object, options: dict[str, Any]) -> Call:
        return read_call(model, inputs, options, self._model.info.limits)

    async def _run(
        self,
        call: Call,
        run: Callable[..., Coroutine[Any, Any, Any]],
        finish: Callable[[list[Any]], list[Any]] = list,
    ) -> Any:
        """Run a task on one text or on many, with full batches and in bounded memory."""

        async def run_one(index: int) -> Any:
            text, label = call.texts[index], text_label(call.field, index, call.texts)
            if isinstance(text, InvalidRequestError):
                return RejectedText(text.text)
            return await run(text, call.options[index], label, report=call.report_errors)

        with self._model.in_use:
            feed = QueueFeed(self._model.batcher, self._batch_tokens)
            results = finish(await feed.map(run_one, range(len(call.texts))))
        if not call.single:
            return results
        if isinstance(results[0], RejectedText):
            raise InvalidRequestError(results[0].error)
        return results[0]
