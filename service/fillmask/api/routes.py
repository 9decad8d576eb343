"""The service's own endpoints for fills, scores and labels."""

from fastapi import APIRouter, Request, Response

from fillmask.api.bodies.classify import ClassifyRequest, ClassifyResponse
from fillmask.api.bodies.fill_request import FillMaskRequest
from fillmask.api.bodies.fill_response import FillMaskResponse
from fillmask.api.bodies.score import ScoreRequest, ScoreResponse
from fillmask.api.models import endpoints_of
from fillmask.api.operations import operation, with_model
from fillmask.api.task_call import TaskCall, json_response, task_call
from fillmask.api.task_route import ClassifyRoute, FillRoute, ScoreRoute, TaskRoute
from fillmask.errors import InvalidRequestError, quote
from fillmask.results.fills import fills_to_json
from fillmask.results.labels import labels_to_json
from fillmask.results.scores import TextScore, scores_to_json

# Writing this many token scores takes 0.3 ms.
_LARGE_SCORES = 1_000


def add_task_routes(router: APIRouter) -> None:
    """Add the endpoints, which respond with 503 until a model is loaded."""
    _add_fills(router)
    _add_scores(router)
    _add_labels(router)


def _add_fills(router: APIRouter) -> None:
    fills = operation(
        [FillMaskRequest],
        {"model": FillMaskResponse},
        summary="Fill the masks of one or more texts",
        tags=["Fills"],
    )

    @FillRoute.post(router, "/fill-mask", **fills)
    async def fill_mask(request: Request) -> Response:
        async with task_call(request) as call:
            return await fill_masks(call)


def _add_scores(router: APIRouter) -> None:
    scores = operation(
        [ScoreRequest],
        {"model": ScoreResponse},
        summary="Score each token of one or more texts",
        tags=["Scores"],
    )

    @with_model(ScoreRoute, router, "/score", scores)
    async def score(request: Request) -> Response:
        async with task_call(request) as call:
            return await score_texts(call)


def _add_labels(router: APIRouter) -> None:
    labels = operation(
        [ClassifyRequest],
        {"model": ClassifyResponse},
        summary="Classify one or more texts",
        tags=["Labels"],
    )

    @with_model(ClassifyRoute, router, "/classify", labels)
    async def classify(request: Request) -> Response:
        async with task_call(request) as call:
            return await classify_texts(call)


def add_model_routes(router: APIRouter) -> None:
    """Add the paths to which Hugging Face's clients send the bodies of a model's first task.

    The routes of all tasks come before /models/{name}, because /models/a/score is also the path of
    a model with the name a/score.
    """
    first = operation(
        [FillMaskRequest, ClassifyRequest],
        {"model": FillMaskResponse | ClassifyResponse},
        summary="Fill the masks of texts, or classify texts",
        description="A model with the task fill-mask fills masks. Any other model classifies.",
        tags=["Hugging Face"],
    )

    @TaskRoute.post(router, "/", **first)
    async def run_default_model(request: Request) -> Response:
        return await run_first_task(request)

    @TaskRoute.post(router, "/models/{name:path}", **first)
    async def run_model(request: Request, name: str) -> Response:  # noqa: ARG001 - for OpenAPI
        return await run_first_task(request)


async def run_first_task(request: Request) -> Response:
    """Respond with the fills or the labels of the texts of a request.

    Hugging Face's clients send the bodies of all tasks to the same path, without the name of the
    task. An error for a body without a mask therefore names the tasks of the model.
    """
    async with task_call(request) as call:
        info = call.served.info
        try:
            fills = info.tasks[0] == "fill-mask"
            return await (fill_masks(call) if fills else classify_texts(call))
        except InvalidRequestError as error:
            if info.mask_token.encode() in call.body:
                raise
            paths = [(task, ", ".join(endpoints_of(call.served, task))) for task in info.tasks]
            tasks = " and ".join(f"{task} ({endpoints})" for task, endpoints in paths)
            raise InvalidRequestError(
                f"{error.text.removesuffix('.')}; model {quote(info.name)} has the task {tasks}."
            ) from error


async def fill_masks(call: TaskCall) -> Response:
    """Respond with the fills of the texts of a request."""
    body = await call.read(FillMaskRequest.read)
    result = await call.fill(body.texts, body.options, report_errors=body.report_errors)
    return await json_response(fills_to_json, result, single=body.single, large=result.is_large)


async def score_texts(call: TaskCall) -> Response:
    """Respond with the scores of the texts of a request."""
    body = await call.read(ScoreRequest.read)
    scores = await call.score(body.texts, body.options, report_errors=body.report_errors)
    values = (
        1 + len(token.target_log_probs or ())
        for one in scores
        if isinstance(one, TextScore)
        for token in one.tokens
    )
    large = sum(values) > _LARGE_SCORES
    return await json_response(scores_to_json, scores, single=body.single, large=large)


async def classify_texts(call: TaskCall) -> Response:
    """Respond with the labels of the texts of a request."""
    body = await call.read(ClassifyRequest.read)
    result = await call.classify(body.texts, body.options, report_errors=body.report_errors)
    return await json_response(
        labels_to_json, result.labels, single=body.single, large=result.is_large
    )
