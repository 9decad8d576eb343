"""Calls of the Python library, which run a task on one text or on many."""

from collections.abc import Callable, Coroutine, Mapping
from operator import itemgetter
from typing import Any

from fillmask.engine.pacing import QueueFeed
from fillmask.errors import InvalidRequestError
from fillmask.models.served_model import ServedModel
from fillmask.parameters.validation import TaskParameters, ValidationContext
from fillmask.tasks.call import Call, read_call, to_list
from fillmask.tasks.classify.parameters import ClassifyParameters
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.rejected import RejectedText
from fillmask.tasks.rerank.parameters import RerankParameters
from fillmask.tasks.rerank.results import rank_texts
from fillmask.tasks.score.parameters import ScoreParameters
from fillmask.tasks.score.results import rank_scores
from fillmask.tasks.sparse.parameters import SparseParameters
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
        fill = self._model.require_fill_mask().fill
        call = self._read(FillMaskParameters, *arguments)
        return self._run(call, fill, lambda result: result.of_text(0))

    def score(self, *arguments: Any) -> Coroutine[Any, Any, Any]:
        score = self._model.require_scoring().score
        return self._run(self._read(ScoreParameters, *arguments), score, itemgetter(0), rank_scores)

    def classify(self, *arguments: Any) -> Coroutine[Any, Any, Any]:
        classify = self._model.require_classification().classify
        call = self._read(ClassifyParameters, *arguments)
        return self._run(call, classify, lambda result: result.labels[0])

    def embed_sparse(self, *arguments: Any) -> Coroutine[Any, Any, Any]:
        embed = self._model.require_sparse().embed
        return self._run(self._read(SparseParameters, *arguments), embed, itemgetter(0))

    def rerank(
        self, query: object, texts: object, options: Mapping[str, Any]
    ) -> Coroutine[Any, Any, Any]:
        classify = self._model.require_reranking().classify
        given = {"query": query, "texts": to_list(texts), **options}
        read = RerankParameters.read(given, ValidationContext(self._model.info.limits))
        call = Call(read.pairs, [read.options] * len(read.texts), field="texts")
        return self._run(
            call,
            classify,
            lambda result: result.labels[0],
            lambda labels: rank_texts(labels, read.top_n),
        )

    def _read(self, model: type[TaskParameters], inputs: object, options: dict[str, Any]) -> Call:
        return read_call(model, inputs, options, self._model.info.limits)

    async def _run(
        self,
        call: Call,
        compute: Callable[..., Coroutine[Any, Any, Any]],
        first: Callable[[Any], Any],
        finish: Callable[[list[Any]], list[Any]] = list,
    ) -> Any:
        """Run a task on one text or on many, with full batches and in bounded memory.

        `compute` is a method of a pipeline, and `first` takes the result of a text from its result.
        """

        async def run_one(index: int) -> Any:
            text, label = call.texts[index], text_label(call.field, index, call.texts)
            if isinstance(text, InvalidRequestError):
                return RejectedText(text.text)
            own, report = [call.options[index]], call.report_errors
            return first(await compute([text], own, label, report_errors=report))

        with self._model.in_use:
            feed = QueueFeed(self._model.batcher, self._batch_tokens)
            results = finish(await feed.map(run_one, range(len(call.texts))))
        if not call.single:
            return results
        if isinstance(results[0], RejectedText):
            raise InvalidRequestError(results[0].error)
        return results[0]
