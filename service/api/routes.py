"""The endpoints, and what the OpenAPI page says of them. No logic."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import (
    BaseModel,
)

from service.api.dependencies import get_model, get_ready_model, get_registry
from service.api.fill_request import FillMaskRequest
from service.api.fill_response import FillMaskAnswer
from service.api.openapi import BEYOND_THE_SCHEMA, json_request_body
from service.api.request_body import (
    ErrorResponse,
)
from service.api.score import ScoreAnswer, ScoreRequest, scores_to_json
from service.errors import NotReadyError
from service.http.disconnect import CancelOnDisconnect
from service.observability.health import Health
from service.observability.request_context import RESERVE
from service.registry.served_model import ModelInfo


class HealthStatus(BaseModel):
    """What the service says of its health."""

    status: str


FILL_MASK_PATH = "/fill-mask"
# where clients of Hugging Face's post what they post to FILL_MASK_PATH
ROOT_PATH, MODEL_PATH = "/", "/models/{name}"

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "The body is not JSON, or a header has a value that is not allowed.",
        401: "An API key is needed, where the server has any.",
        408: "The request did not arrive in its time.",
        413: "The body is too large.",
        415: "The content type is not application/json, or the body is compressed.",
        422: "The request is JSON and cannot be answered; the error says why. It does not fit the "
        "schema, or it breaks a rule that no schema can say: " + BEYOND_THE_SCHEMA,
        429: "The service is overloaded; Retry-After says for how many seconds.",
        431: "The head of the request is too large.",
        500: "The service has failed on this request; its log has the request id.",
        503: "The service is stopping or has failed.",
        504: "There was no answer in the time that the request had.",
    }.items()
}

_NO_SUCH_MODEL: dict[int | str, dict[str, Any]] = {
    404: {"model": ErrorResponse, "description": "There is no model of that name."}
}


def create_router(health: Health, max_texts: int, max_top_k: int) -> APIRouter:
    """The endpoints; once there is an `app.state.models`, they answer."""
    router = APIRouter()
    _add_scores(router, max_texts)  # whose paths are also such of a model with a slash in its name
    _add_fills(router, health, max_texts, max_top_k)
    _add_service(router)
    return router


def _add_fills(router: APIRouter, health: Health, max_texts: int, max_top_k: int) -> None:
    fills: dict[str, Any] = {
        "summary": "Fill the masks of one text or several",
        "openapi_extra": json_request_body(
            FillMaskRequest.schema_with_limits(max_texts, max_top_k)
        ),
    }
    answers = {200: {"model": FillMaskAnswer}, **_ERRORS}

    @router.post(FILL_MASK_PATH, tags=["Fills"], responses=answers, **fills)
    @router.post(ROOT_PATH, tags=["Hugging Face"], responses=answers, **fills)
    async def fill_mask() -> None:
        # FillMaskApp has such requests answered by FillMaskEndpoint, once it can answer
        raise NotReadyError(health.not_ready_reason or "The service is starting.")

    @router.post(
        "/models/{name:path}", tags=["Hugging Face"], responses=answers | _NO_SUCH_MODEL, **fills
    )
    async def fill_mask_of_model(request: Request, name: str) -> None:
        get_registry(request.app).get(name)
        await fill_mask()


def _add_scores(router: APIRouter, max_texts: int) -> None:
    scores: dict[str, Any] = {
        "summary": "Score each token of one text or several",
        "openapi_extra": json_request_body(ScoreRequest.schema_with_limits(max_texts)),
    }
    answers = {200: {"model": ScoreAnswer}, **_ERRORS}

    @router.post(
        "/models/{name:path}/score", tags=["Scores"], responses=answers | _NO_SUCH_MODEL, **scores
    )
    async def score_of_model(request: Request, name: str) -> Response:
        return await score(request, name)

    @router.post("/score", tags=["Scores"], responses=answers, **scores)
    async def score_of_default(request: Request) -> Response:
        return await score(request, None)

    async def score(request: Request, name: str | None) -> Response:
        body, content_type = await request.body(), request.headers.get("content-type")
        served = get_model(request, name)
        with served.in_use:
            served.batcher.raise_if_overloaded(bulk=True)
            read = await asyncio.to_thread(
                ScoreRequest.read, body, content_type, served.info.limits
            )
            with CancelOnDisconnect(request.receive):
                scored = await served.scoring.score(
                    read.texts,
                    read.variants,
                    "inputs",
                    report_errors=read.report,
                    reserve=request.scope[RESERVE],
                )
        content = await asyncio.to_thread(scores_to_json, scored, single=read.single)
        return Response(content, media_type="application/json")


def _add_service(router: APIRouter) -> None:
    @router.get("/health/live", summary="Is the process there?", tags=["Service"])
    async def live() -> HealthStatus:
        return HealthStatus(status="live")

    @router.get(
        "/health/ready",
        summary="Can it answer?",
        tags=["Service"],
        responses={503: {"model": ErrorResponse, "description": "Not yet, or not any more."}},
    )
    async def ready(request: Request) -> HealthStatus:
        for name in get_registry(request.app).by_name:
            await get_ready_model(request.app, name)
        return HealthStatus(status="ready")

    @router.get("/info", summary="The model that answers where none is named", tags=["Service"])
    async def info(request: Request) -> ModelInfo:
        return get_registry(request.app).default.info

    @router.get("/models", summary="Which models are served", tags=["Service"])
    async def models(request: Request) -> list[ModelInfo]:
        return [served.info for served in get_registry(request.app).by_name.values()]

    @router.get(
        "/models/{name:path}",
        summary="One of them",
        tags=["Service"],
        responses={"4XX": {"model": ErrorResponse, "description": "There is none of that name."}},
    )
    async def model(request: Request, name: str) -> ModelInfo:
        return get_registry(request.app).get(name).info
