"""Calls of the Python library: their keyword arguments, and how they run on one text or on many."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fillmask.engine.pacing import QueueFeed
from fillmask.errors import InvalidRequestError
from fillmask.models.served_model import ServedModel
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText, TextPair, plain_text, read_inputs
from fillmask.parameters.types import OnErrorField
from fillmask.parameters.validation import (
    ClientObject,
    TaskParameters,
    ValidationContext,
    check_same_length,
)
from fillmask.parameters.values import merge_parameters
from fillmask.tasks.pipeline import Pipeline
from fillmask.tasks.rerank.parameters import RerankParameters
from fillmask.tasks.rerank.results import rank_texts
from fillmask.tasks.result import RejectedText
from fillmask.tasks.task import Task
from fillmask.tokenization.reader import text_label


@dataclass(frozen=True, slots=True)
class Call:
    """Texts with their checked parameters.

    Attributes:
        texts: the texts, and in place of an invalid one the error that its result reports.
        field: name of the texts in error messages.
    """

    texts: Sequence[InputText | InvalidRequestError]
    parameters: Sequence[Any]
    single: bool = False
    report_errors: bool = False
    field: str = "inputs"


class _Policy(ClientObject):
    on_error: OnErrorField = None


def read_call(
    model: type[TaskParameters],
    inputs: object,
    keywords: Mapping[str, object],
    limits: Limits,
) -> Call:
    """Check the arguments of a call. Everything that belongs to the caller is read here.

    Raises:
        InvalidRequestError: an argument is invalid. The message describes the first error.
    """
    context, texts = ValidationContext(limits), to_list(inputs)
    common = _read_options(keywords)
    own = common.pop("parameters", None)
    policy = _Policy.check({"on_error": common.pop("on_error", None)}, context)
    report_errors = policy.on_error == "report"
    if not isinstance(texts, list) or texts:  # in Python, no texts have no results
        texts = read_inputs(
            texts,
            context.texts,
            limits.max_texts,
            pairs=model.reads_pairs,
            report_errors=report_errors,
        )
    given = [_merge(common, one) for one in own] if isinstance(own, list) else _merge(common, own)
    checked = model.read_each(given, context)
    check_same_length(checked, texts, context)
    single = not isinstance(texts, list)
    each = texts if isinstance(texts, list) else [texts]
    if not isinstance(checked, list):
        return Call(each, [checked] * len(each), single, report_errors)
    return Call(each, checked, single, report_errors)


def _merge(common: dict[str, object], own: object) -> object:
    if isinstance(own, Mapping):
        return merge_parameters(common, _read_options(own))
    return common if own is None else own


def _read_options(options: Mapping[str, object]) -> dict[str, object]:
    read = {name: to_list(value) for name, value in options.items()}
    for name, value in read.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                plain_text(text, name)
    return read


def to_list(value: object) -> object:
    """Return a tuple, an array, a column or another iterable of values as a list.

    A table is not such an iterable, because pandas iterates over the names of its columns.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str | bytes | TextPair | list) or not isinstance(value, Iterable):
        return value
    if getattr(value, "ndim", 1) != 1:  # a table, or an array without axes
        return value
    return list(iter(value))  # list(value) trusts the length that an object says it has


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

    def run(
        self, task: Task, inputs: object, keywords: Mapping[str, object]
    ) -> Coroutine[Any, Any, Any]:
        pipeline = self._model.pipeline(task)
        call = read_call(task.parameters, inputs, keywords, self._model.info.limits)
        return self._run(call, pipeline, task.value, task.together)

    def rerank(
        self, query: object, texts: object, keywords: Mapping[str, Any]
    ) -> Coroutine[Any, Any, Any]:
        pipeline = self._model.require_reranking()
        given = {"query": query, "texts": to_list(texts), **keywords}
        read = RerankParameters.read(given, ValidationContext(self._model.info.limits))
        call = Call(read.pairs, [read] * len(read.texts), field="texts")
        return self._run(call, pipeline, finish=lambda labels: rank_texts(labels, read.top_n))

    async def _run(
        self,
        call: Call,
        pipeline: Pipeline[Any, Any, Any],
        value: Callable[[Any], Any] = lambda result: result,
        finish: Callable[[list[Any]], list[Any]] = list,
    ) -> Any:
        """Run a task on one text or on many, with full batches and in bounded memory."""

        async def run_one(index: int) -> Any:
            text, label = call.texts[index], text_label(call.field, index, call.texts)
            if isinstance(text, InvalidRequestError):
                return RejectedText(text.text)
            own, report = [call.parameters[index]], call.report_errors
            [result] = await pipeline.compute([text], own, label, report_errors=report)
            return result if isinstance(result, RejectedText) else value(result)

        with self._model.in_use:
            if not call.single:
                feed = QueueFeed(self._model.batcher, self._batch_tokens)
                return finish(await feed.map(run_one, range(len(call.texts))))
            [result] = finish([await run_one(0)])
        if isinstance(result, RejectedText):
            raise InvalidRequestError(result.error)
        return result
