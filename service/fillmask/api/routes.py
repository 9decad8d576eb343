"""The service's own endpoints for fills, scores and labels."""

from fastapi import APIRouter, Response

from fillmask.api.models import endpoints_of
from fillmask.api.operations import add_route, with_call
from fillmask.api.task_call import TaskCall, json_response
from fillmask.api.task_route import ClassifyRoute, FillRoute, ScoreRoute, TaskRoute
from fillmask.api.wire.classify import ClassifyRequest, ClassifyResponse
from fillmask.api.wire.fill_request import FillMaskRequest
from fillmask.api.wire.fill_response import FillMaskResponse
from fillmask.api.wire.score import ScoreRequest, ScoreResponse
from fillmask.errors import InvalidRequestError, quote
from fillmask.tasks.classify.results import labels_to_json
from fillmask.tasks.fill_mask.results import fills_to_json
from fillmask.tasks.score.results import TextScore, scores_to_json

# Writing this many token scores takes 0.3 ms.
_LARGE_SCORES = 1_000


def add_task_routes(router: APIRouter) -> None:
    add_route(
        router,
        FillRoute,
        "/fill-mask",
        with_call(fill_masks),
        name="fill_mask",
        reads=[FillMaskRequest],
        responds=FillMaskResponse,
        summary="Fill the masks of one or more texts",
        tags=["Fills"],
    )
    add_route(
        router,
        ScoreRoute,
        "/score",
        with_call(score_texts),
        name="score",
        reads=[ScoreRequest],
        responds=ScoreResponse,
        with_model=True,
        summary="Score each token of one or more texts",
        tags=["Scores"],
    )
    add_route(
        router,
        ClassifyRoute,
        "/classify",
        with_call(classify_texts),
        name="classify",
        reads=[ClassifyRequest],
        responds=ClassifyResponse,
        with_model=True,
        summary="Classify one or more texts",
        tags=["Labels"],
    )


def add_model_routes(router: APIRouter) -> None:
    """Add the paths to which Hugging Face's clients send the bodies of a model's first task.

    The routes of all tasks come before /models/{name}, because /models/a/score is also the path of
    a model with the name a/score.
    """
    for path, name in (("/", "run_default_model"), ("/models/{name:path}", "run_model")):
        add_route(
            router,
            TaskRoute,
            path,
            with_call(run_first_task),
            name=name,
            reads=[FillMaskRequest, ClassifyRequest],
            responds=FillMaskResponse | ClassifyResponse,
            summary="Fill the masks of texts, or classify texts",
            description="A model with the task fill-mask fills masks. Any other model classifies.",
            tags=["Hugging Face"],
        )


async def run_first_task(call: TaskCall) -> Response:
    """Respond with the fills or the labels of the texts of a request.

    Hugging Face's clients send the bodies of all tasks to the same path, without the name of the
    task. An error for a body without a mask therefore names the tasks of the model.
    """
    info = call.served.info
    try:
        return await (fill_masks if info.tasks[0] == "fill-mask" else classify_texts)(call)
    except InvalidRequestError as error:
        if info.mask_token.encode() in call.body:
            raise
        paths = [(task, ", ".join(endpoints_of(call.served, task))) for task in info.tasks]
        tasks = " and ".join(f"{task} ({endpoints})" for task, endpoints in paths)
        raise InvalidRequestError(
            f"{error.text.removesuffix('.')}; model {quote(info.name)} has the task {tasks}."
        ) from error


async def fill_masks(call: TaskCall) -> Response:
    body = await call.read(FillMaskRequest.read)
    pipeline = call.served.require_fill_mask()
    result = await call.run(pipeline, body.texts, body.options, report_errors=body.report_errors)
    return await json_response(fills_to_json, result, single=body.single, large=result.is_large)


async def score_texts(call: TaskCall) -> Response:
    body = await call.read(ScoreRequest.read)
    pipeline = call.served.require_scoring()
    scores = await call.run(pipeline, body.texts, body.options, report_errors=body.report_errors)
    values = (
        1 + len(token.target_log_probs or ())
        for one in scores
        if isinstance(one, TextScore)
        for token in one.tokens
    )
    large = sum(values) > _LARGE_SCORES
    return await json_response(scores_to_json, scores, single=body.single, large=large)


async def classify_texts(call: TaskCall) -> Response:
    body = await call.read(ClassifyRequest.read)
    pipeline = call.served.require_classification()
    result = await call.run(pipeline, body.texts, body.options, report_errors=body.report_errors)
    return await json_response(
        labels_to_json, result.labels, single=body.single, large=result.is_large
    )
