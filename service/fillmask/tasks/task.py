"""The tasks of the service: a folder and a row of TASKS each.

HTTP, Python, the command and OpenAPI iterate over TASKS. A further task needs nothing but its row,
and only wire formats, the page and the columns of files may know it by name.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import JsonValue

from fillmask.bundles.description import Task as BundleTask
from fillmask.parameters.validation import TaskParameters
from fillmask.tasks.classify.golden import load_labels
from fillmask.tasks.classify.parameters import ClassifyParameters
from fillmask.tasks.classify.results import ClassifyResponse, labels_to_json
from fillmask.tasks.classify_tokens.golden import load_tokens
from fillmask.tasks.classify_tokens.parameters import ClassifyTokensParameters
from fillmask.tasks.classify_tokens.results import ClassifyTokensResponse, entities_to_json
from fillmask.tasks.fill_mask.golden import load_fills
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.fill_mask.results import FillMaskResponse, TextFills, fills_to_json
from fillmask.tasks.pipeline import Parts, Pipeline
from fillmask.tasks.result import response_parts
from fillmask.tasks.score.parameters import ScoreParameters
from fillmask.tasks.score.pipeline import load_scores
from fillmask.tasks.score.results import ScoreResponse, rank_scores, score_to_json
from fillmask.tasks.sparse.golden import load_vectors
from fillmask.tasks.sparse.parameters import SparseParameters
from fillmask.tasks.sparse.results import vector_to_json


class Endpoint(NamedTuple):
    """The endpoint of a task, below the name of a model too.

    Attributes:
        inputs: description of the texts of a request.
        response: type of the response.
        bulk: whether its work joins the bulk lane.
        hugging_face: whether the paths of Hugging Face's clients also serve the task.
    """

    path: str
    summary: str
    tag: str
    inputs: str
    examples: Sequence[JsonValue]
    response: Any
    bulk: bool = False
    hugging_face: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A task.

    Attributes:
        name: what the command and messages call it.
        of_bundle: task that a bundle must have.
        load: function that makes the pipeline of a model, once the golden results are right. It
            raises BundleError if they differ by more than rounding explains.
        to_json: function that returns the JSON of a text's result, in parts.
        value: function that returns the result of a text in Python.
        together: function that completes the results of several calls for one text each.
        listed: whether the response to a single text is a list.
        endpoint: its endpoint, or None if only a wire format has one.
    """

    name: str
    of_bundle: BundleTask
    parameters: type[TaskParameters]
    load: Callable[[Parts], Awaitable[Pipeline[Any, Any, Any]]]
    to_json: Callable[[Any], list[bytes]]
    value: Callable[[Any], Any] = lambda result: result
    together: Callable[[list[Any]], list[Any]] = list
    listed: bool = False
    endpoint: Endpoint | None = None

    def response(self, results: Sequence[Any], *, single: bool) -> bytes:
        """Return the response in our own format. Errors are those of `response_parts`."""
        parts = response_parts(results, self.to_json, single=single)
        return b"".join([b"[", *parts, b"]"] if single and self.listed else parts)


FILL_MASK = Task(
    name="fill-mask",
    of_bundle="fill-mask",
    parameters=FillMaskParameters,
    load=load_fills,
    to_json=fills_to_json,
    value=TextFills.nested,
    endpoint=Endpoint(
        "/fill-mask",
        "Fill the masks of one or more texts",
        "Fills",
        "A text or a pair of texts with at least one mask, or a list of these.",
        (
            {"inputs": "Paris is the [MASK] of France.", "parameters": {"top_k": 5}},
            {"inputs": "She drank a cup of [MASK].", "parameters": {"targets": ["tea", "water"]}},
            {"inputs": {"text": "Where is she?", "text_pair": "She is at the [MASK]."}},
        ),
        FillMaskResponse,
        hugging_face=True,
    ),
)
SCORE = Task(
    name="score",
    of_bundle="fill-mask",
    parameters=ScoreParameters,
    load=load_scores,
    to_json=score_to_json,
    together=rank_scores,
    endpoint=Endpoint(
        "/score",
        "Score each token of one or more texts",
        "Scores",
        "A text or a pair of texts without masks, or a list of these.",
        (
            {"inputs": ["The capital of France is Paris.", "The capital of France is Rome."]},
            {"inputs": {"text": "Where is she?", "text_pair": "She is at home."}},
            {
                "inputs": ["The capital of France is Paris.", "The capital of France is Rome."],
                "parameters": {"prefix": "The capital of France is"},
            },
            {"inputs": "The dog barked.", "parameters": {"targets": ["the", "a"]}},
        ),
        ScoreResponse,
        bulk=True,
    ),
)
CLASSIFY = Task(
    name="classify",
    of_bundle="text-classification",
    parameters=ClassifyParameters,
    load=load_labels,
    to_json=labels_to_json,
    listed=True,
    endpoint=Endpoint(
        "/classify",
        "Classify one or more texts",
        "Labels",
        "A text or a pair of texts, or a list of these.",
        (
            {"inputs": "I loved this film.", "parameters": {"top_k": 1}},
            {"inputs": {"text": "Where is she?", "text_pair": "She is at home."}},
        ),
        ClassifyResponse,
        hugging_face=True,
    ),
)
SPARSE = Task(
    name="sparse",
    of_bundle="sparse",
    parameters=SparseParameters,
    load=load_vectors,
    to_json=vector_to_json,
    listed=True,
)

CLASSIFY_TOKENS = Task(
    name="classify-tokens",
    of_bundle="token-classification",
    parameters=ClassifyTokensParameters,
    load=load_tokens,
    to_json=entities_to_json,
    endpoint=Endpoint(
        "/classify-tokens",
        "Find the entities of one or more texts",
        "Entities",
        "A text or a pair of texts, or a list of these.",
        (
            {"inputs": "Ada Lovelace was born in London."},
            {
                "inputs": ["Ada Lovelace was born in London."],
                "parameters": {"aggregation_strategy": "first", "on_long_text": "window"},
            },
        ),
        ClassifyTokensResponse,
        hugging_face=True,
    ),
)

TASKS: dict[str, Task] = {
    task.name: task for task in (FILL_MASK, SCORE, CLASSIFY, CLASSIFY_TOKENS, SPARSE)
}


def tasks_of(bundle_tasks: Sequence[BundleTask]) -> list[Task]:
    """Return the tasks of a model, in the order of the tasks of its bundle."""
    return [task for one in bundle_tasks for task in TASKS.values() if task.of_bundle == one]
