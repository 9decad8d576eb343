"""The service's own endpoints and their OpenAPI descriptions."""

import asyncio
from typing import Any, NoReturn

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from service.api.bodies.classify import ClassifyRequest, ClassifyResponse
from service.api.bodies.fill_request import FillMaskRequest
from service.api.bodies.fill_response import FillMaskResponse
from service.api.bodies.request_body import ErrorResponse
from service.api.bodies.score import ScoreRequest, ScoreResponse, scores_to_json
from service.api.dependencies import get_model, get_ready_model, get_registry
from service.api.openapi import BEYOND_THE_SCHEMA, json_request_body
from service.bundles.description import Task
from service.errors import NotReadyError
from service.http.disconnect import CancelOnDisconnect
from service.observability.health import Health
from service.observability.request_context import RESERVE
from service.registry.served_model import ModelInfo


class HealthStatus(BaseModel):
    """Health of the service."""

    status: str


FILL_MASK_PATH, CLASSIFY_PATH = "/fill-mask", "/classify"
# paths to which Hugging Face's clients send the bodies of the first task of a model
ROOT_PATH, MODEL_PATH = "/", "/models/{name}"
MODEL_CLASSIFY_PATH = "/models/{name}/classify"

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "The body is not valid JSON, or a header is invalid.",
        401: "The request has no API key, or the server does not know the key.",
        408: "The request does not arrive in time.",
        413: "The body is too large.",
        415: "The content type is not application/json, or the body is compressed.",
        422: "A parameter or an input is invalid. The error states the reason. The request does "
        "not match the schema or breaks a rule that a schema cannot express. Examples of these "
        "rules:" + BEYOND_THE_SCHEMA,
        429: "The service is overloaded. The header Retry-After contains the delay in seconds.",
        431: "The headers of the request are too large.",
        500: "The service has an internal error. Its log contains the request id.",
        503: "The service is starting, is stopping or has failed.",
        504: "The request exceeds its time limit.",
    }.items()
}

_NO_SUCH_MODEL: dict[int | str, dict[str, Any]] = {
    404: {"model": ErrorResponse, "description": "No model has that name."}
}


def create_router(health: Health, max_texts: int, max_top_k: int) -> APIRouter:
    """Create the endpoints.

    All endpoints except GET /health/live respond with status 503 until `app.state.models` is set.
    """
    router = APIRouter()
    # These routes come first, because /models/a/score is also the path of a model with the name
    # a/score.
    _add_scores(router, max_texts)
    _add_labels(router, health, max_texts)
    _add_fills(router, health, max_texts, max_top_k)
    _add_service(router)
    return router


def _add_fills(router: APIRouter, health: Health, max_texts: int, max_top_k: int) -> None:
    fills: dict[str, Any] = {
        "summary": "Fill the masks of one or more texts",
        "openapi_extra": json_request_body(
            FillMaskRequest.schema_with_limits(max_texts, max_top_k)
        ),
    }
    responses = {200: {"model": FillMaskResponse}, **_ERRORS}
    # TaskSchemas documents the bodies of paths whose task depends on the model
    first: dict[str, Any] = {
        "summary": "Fill the masks of texts, or classify texts",
        "description": "A model with the task fill-mask fills masks. Any other model classifies.",
        "openapi_extra": json_request_body({}),
        "tags": ["Hugging Face"],
    }

    @router.post(FILL_MASK_PATH, tags=["Fills"], responses=responses, **fills)
    async def fill_mask(request: Request) -> None:
        _raise_not_ready(request, health, None, "fill-mask")

    @router.post(ROOT_PATH, responses=responses, **first)
    async def first_task(request: Request) -> None:
        _raise_not_ready(request, health, None, None)

    @router.post("/models/{name:path}", responses=responses | _NO_SUCH_MODEL, **first)
    async def first_task_of_model(request: Request, name: str) -> None:
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


def _add_scores(router: APIRouter, max_texts: int) -> None:
    scores: dict[str, Any] = {
        "summary": "Score each token of one or more texts",
        "openapi_extra": json_request_body(ScoreRequest.schema_with_limits(max_texts)),
    }
    responses = {200: {"model": ScoreResponse}, **_ERRORS}

    @router.post(
        "/models/{name:path}/score", tags=["Scores"], responses=responses | _NO_SUCH_MODEL, **scores
    )
    async def score_of_model(request: Request, name: str) -> Response:
        return await score(request, name)

    @router.post("/score", tags=["Scores"], responses=responses, **scores)
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


def _add_labels(router: APIRouter, health: Health, max_texts: int) -> None:
    labels: dict[str, Any] = {
        "summary": "Classify one or more texts",
        "openapi_extra": json_request_body(ClassifyRequest.schema_with_limits(max_texts)),
    }
    responses = {200: {"model": ClassifyResponse}, **_ERRORS}

    @router.post(
        "/models/{name:path}/classify",
        tags=["Labels"],
        responses=responses | _NO_SUCH_MODEL,
        **labels,
    )
    async def classify_with_model(request: Request, name: str) -> None:
        _raise_not_ready(request, health, name, "text-classification")

    @router.post(CLASSIFY_PATH, tags=["Labels"], responses=responses, **labels)
    async def classify(request: Request) -> None:
        _raise_not_ready(request, health, None, "text-classification")


def _add_service(router: APIRouter) -> None:
    @router.get("/health/live", summary="Check that the process is alive", tags=["Service"])
    async def live() -> HealthStatus:
        return HealthStatus(status="live")

    @router.get(
        "/health/ready",
        summary="Check that every model is ready",
        tags=["Service"],
        responses={
            503: {
                "model": ErrorResponse,
                "description": "The service is starting, is stopping or has failed.",
            }
        },
    )
    async def ready(request: Request) -> HealthStatus:
        for name in get_registry(request.app).by_name:
            await get_ready_model(request.app, name)
        return HealthStatus(status="ready")

    @router.get("/info", summary="Describe the default model", tags=["Service"])
    async def info(request: Request) -> ModelInfo:
        return get_registry(request.app).default.info

    @router.get("/models", summary="List the served models", tags=["Service"])
    async def models(request: Request) -> list[ModelInfo]:
        return [served.info for served in get_registry(request.app).by_name.values()]

    @router.get(
        "/models/{name:path}",
        summary="Describe one model",
        tags=["Service"],
        responses={"4XX": {"model": ErrorResponse, "description": "No model has that name."}},
    )
    async def model(request: Request, name: str) -> ModelInfo:
        return get_registry(request.app).get(name).info
