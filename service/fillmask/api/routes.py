"""The service's own endpoints and their OpenAPI descriptions."""

import asyncio
from typing import Any, NoReturn

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from fillmask.api.bodies.classify import ClassifyResponse
from fillmask.api.bodies.fill_response import FillMaskResponse
from fillmask.api.bodies.score import ScoreRequest, ScoreResponse
from fillmask.api.dependencies import get_model, get_ready_model, get_registry
from fillmask.bundles.description import Task
from fillmask.errors import NotReadyError
from fillmask.http.disconnect import CancelOnDisconnect
from fillmask.observability.health import Health
from fillmask.observability.request_context import RESERVE
from fillmask.registry.served_model import ModelInfo
from fillmask.results.scores import scores_to_json


class HealthStatus(BaseModel):
    """Health of the service."""

    status: str


FILL_MASK_PATH, CLASSIFY_PATH = "/fill-mask", "/classify"
# paths to which Hugging Face's clients send the bodies of the first task of a model
ROOT_PATH, MODEL_PATH = "/", "/models/{name}"
MODEL_CLASSIFY_PATH = "/models/{name}/classify"
SCORE_PATH, MODEL_SCORE_PATH = "/score", "/models/{name}/score"


def create_router(health: Health) -> APIRouter:
    """Create the endpoints.

    All endpoints except GET /health/live respond with status 503 until `app.state.models` is set.
    `RequestSchemas` adds the request bodies to the OpenAPI document.
    """
    router = APIRouter()
    # These routes come first, because /models/a/score is also the path of a model with the name
    # a/score.
    _add_scores(router)
    _add_labels(router, health)
    _add_fills(router, health)
    _add_service(router)
    return router


def _add_fills(router: APIRouter, health: Health) -> None:
    responses: dict[int | str, dict[str, Any]] = {200: {"model": FillMaskResponse}}
    first: dict[str, Any] = {
        "summary": "Fill the masks of texts, or classify texts",
        "description": "A model with the task fill-mask fills masks. Any other model classifies.",
        "responses": responses,
        "tags": ["Hugging Face"],
    }

    @router.post(
        FILL_MASK_PATH,
        summary="Fill the masks of one or more texts",
        responses=responses,
        tags=["Fills"],
    )
    async def fill_mask(request: Request) -> None:
        _raise_not_ready(request, health, None, "fill-mask")

    @router.post(ROOT_PATH, **first)
    async def run_default_model(request: Request) -> None:
        _raise_not_ready(request, health, None, None)

    @router.post("/models/{name:path}", **first)
    async def run_model(request: Request, name: str) -> None:
        _raise_not_ready(request, health, name, None)


def _raise_not_ready(
    request: Request, health: Health, name: str | None, task: Task | None
) -> NoReturn:
    """Raise the error of a request that FillMaskApp does not route to TaskEndpoint.

    Either the service is not ready, or no model has the requested name and task.
    """
    get_registry(request.app).get(name, task)
    raise NotReadyError(
        health.not_ready_reason or "The service is starting; wait until it is ready."
    )


def _add_scores(router: APIRouter) -> None:
    scores: dict[str, Any] = {
        "summary": "Score each token of one or more texts",
        "responses": {200: {"model": ScoreResponse}},
        "tags": ["Scores"],
    }

    @router.post("/models/{name:path}/score", operation_id="score_with_model", **scores)
    async def score_of_model(request: Request, name: str) -> Response:
        return await score(request, name)

    @router.post(SCORE_PATH, operation_id="score", **scores)
    async def score_of_default(request: Request) -> Response:
        return await score(request, None)

    async def score(request: Request, name: str | None) -> Response:
        body, content_type = await request.body(), request.headers.get("content-type")
        served = get_model(request, name, "fill-mask")
        with served.in_use:
            served.batcher.raise_if_overloaded(bulk=True)
            parsed = await asyncio.to_thread(
                ScoreRequest.read, body, content_type, served.info.limits
            )
            with CancelOnDisconnect(request.receive):
                scored = await served.require_scoring().score(
                    parsed.texts,
                    parsed.options,
                    "inputs",
                    report_errors=parsed.report_errors,
                    reserve=request.scope[RESERVE],
                )
        content = await asyncio.to_thread(scores_to_json, scored, single=parsed.single)
        return Response(content, media_type="application/json")


def _add_labels(router: APIRouter, health: Health) -> None:
    labels: dict[str, Any] = {
        "summary": "Classify one or more texts",
        "responses": {200: {"model": ClassifyResponse}},
        "tags": ["Labels"],
    }

    @router.post("/models/{name:path}/classify", **labels)
    async def classify_with_model(request: Request, name: str) -> None:
        _raise_not_ready(request, health, name, "text-classification")

    @router.post(CLASSIFY_PATH, **labels)
    async def classify(request: Request) -> None:
        _raise_not_ready(request, health, None, "text-classification")


def _add_service(router: APIRouter) -> None:
    @router.get("/health/live", summary="Check that the process is alive", tags=["Service"])
    async def live() -> HealthStatus:
        return HealthStatus(status="live")

    @router.get("/health/ready", summary="Check that every model is ready", tags=["Service"])
    async def ready(request: Request) -> HealthStatus:
        for name in get_registry(request.app).by_name:
            await get_ready_model(request.app, name)
        return HealthStatus(status="ready")

    @router.get("/info", summary="Describe the default model", tags=["Service"])
    async def info(request: Request) -> ModelInfo:
        return get_registry(request.app).default.info

    @router.get(
        "/models",
        summary="List the served models",
        tags=["Service"],
        operation_id="list_models",
    )
    async def models(request: Request) -> list[ModelInfo]:
        return [served.info for served in get_registry(request.app).by_name.values()]

    @router.get(
        "/models/{name:path}",
        summary="Describe one model",
        tags=["Service"],
        operation_id="get_model",
    )
    async def model(request: Request, name: str) -> ModelInfo:
        return get_registry(request.app).get(name).info
