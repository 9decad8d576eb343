"""The endpoints of the Open Inference Protocol and of the V1 protocol."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from fillmask import __version__
from fillmask.api.bodies.classify import ClassifyRequest
from fillmask.api.bodies.fill_request import FillMaskRequest
from fillmask.api.dependencies import get_model, get_ready_model, get_registry
from fillmask.api.protocols.infer_request import InferRequest
from fillmask.api.protocols.infer_response import (
    InferResponse,
    fill_tensors,
    label_tensors,
    response_body,
)
from fillmask.api.protocols.metadata import MODEL_VERSION, metadata
from fillmask.api.protocols.predict_v1 import (
    PredictClassifyResponse,
    PredictFillMaskResponse,
    parse_request,
    response_json,
)
from fillmask.errors import NotFoundError, quote
from fillmask.http.disconnect import CancelOnDisconnect
from fillmask.observability.request_context import RESERVE
from fillmask.registry.served_model import ServedModel
from fillmask.results.fills import FillResult
from fillmask.results.labels import ClassificationResult

PREDICT_PATH = "/v1/models/{name}:predict"
_MODEL, _VERSION = "/v2/models/{name}", "/v2/models/{name}/versions/{version}"
INFER_PATHS = (f"{_MODEL}/infer", f"{_VERSION}/infer")

# Parameters that are not in the path of every route have no place in the signature of a function,
# because FastAPI takes them for query parameters.
_WITH_VERSION: dict[str, Any] = {
    "parameters": [
        {"name": "version", "in": "path", "required": True, "schema": {"type": "string"}}
    ]
}
_JSON = "application/json"
_JSON_BYTES = "inference-header-content-length"
_INFERRED: dict[int | str, dict[str, Any]] = {
    200: {
        "model": InferResponse,
        "description": "The outputs, in JSON or with binary tensors after the JSON.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def create_protocol_router() -> APIRouter:
    """Create the endpoints, which use the model registry at `app.state.models`.

    `RequestSchemas` adds their request bodies to the OpenAPI document.
    """
    router = APIRouter()
    _add_open_inference(router)
    _add_predict(router)
    return router


def _add_open_inference(router: APIRouter) -> None:
    tags: list[Any] = ["Open Inference Protocol v2"]

    @router.get("/v2", summary="Describe the server", tags=tags)
    async def v2_server() -> dict[str, Any]:
        return {"name": "fillmask", "version": __version__, "extensions": ["binary_tensor_data"]}

    @router.get("/v2/health/live", summary="Check that the process is alive", tags=tags)
    async def v2_live() -> dict[str, bool]:
        return {"live": True}

    @router.get("/v2/health/ready", summary="Check that the default model is ready", tags=tags)
    async def v2_ready(request: Request) -> dict[str, bool]:
        await get_ready_model(request.app)
        return {"ready": True}

    @router.get("/v2/models", summary="List the names of the served models", tags=tags)
    async def v2_models(request: Request) -> dict[str, list[str]]:
        return {"models": list(get_registry(request.app).by_served_name)}

    @router.post("/v2/repository/index", summary="List the served models", tags=tags)
    async def v2_repository_index(request: Request) -> list[dict[str, str]]:
        reason = request.app.state.health.not_ready_reason or ""
        state = "UNAVAILABLE" if reason else "READY"
        return [
            {"name": name, "version": MODEL_VERSION, "state": state, "reason": reason}
            for name in get_registry(request.app).by_served_name
        ]

    _add_missing_extensions(router)

    @router.get(_MODEL, summary="Describe the model", tags=tags)
    @router.get(_VERSION, summary="Describe the model", tags=tags, openapi_extra=_WITH_VERSION)
    async def v2_model(request: Request, name: str) -> dict[str, Any]:
        info = get_registry(request.app).get(name).info
        _check_version(request)
        return metadata(name, info.tasks, pairs=info.pairs)

    @router.get(f"{_MODEL}/ready", summary="Check that the model is ready", tags=tags)
    @router.get(
        f"{_VERSION}/ready",
        summary="Check that the model is ready",
        tags=tags,
        openapi_extra=_WITH_VERSION,
    )
    async def v2_model_ready(request: Request, name: str) -> dict[str, Any]:
        await get_ready_model(request.app, name)
        _check_version(request)
        return {"name": name, "ready": True}

    infers: dict[str, Any] = {
        "summary": "Fill masks or classify texts",
        "responses": _INFERRED,
        "tags": tags,
    }

    @router.post(INFER_PATHS[0], **infers)
    @router.post(INFER_PATHS[1], openapi_extra=_WITH_VERSION, **infers)
    async def infer(request: Request, name: str) -> Response:
        body, json_bytes = await request.body(), request.headers.get(_JSON_BYTES)
        served = get_model(request, name, None)
        names = get_registry(request.app).names_of(served)
        _check_version(request)
        with served.in_use:
            served.batcher.raise_if_overloaded()
            parsed = await asyncio.to_thread(
                InferRequest.read, body, json_bytes, served.info.limits, served.info.tasks[0]
            )
            parsed.check_model_name(names)
            get_registry(request.app).get(name, parsed.task)
            result = await _run(request, served, parsed.body, parsed.label)
        content, head_bytes = await asyncio.to_thread(_infer_response, name, parsed, result)
        if head_bytes is None:
            return Response(content, media_type=_JSON)
        headers = {_JSON_BYTES: str(head_bytes)}
        return Response(content, media_type="application/octet-stream", headers=headers)


def _add_missing_extensions(router: APIRouter) -> None:
    """Add 404 responses to requests of Triton's clients for extensions that the service lacks."""

    @router.get(f"{_MODEL}/config", include_in_schema=False)
    @router.get(f"{_VERSION}/config", include_in_schema=False)
    async def v2_model_config(request: Request, name: str) -> None:
        get_registry(request.app).get(name)
        _check_version(request)
        raise NotFoundError(
            f"The service has no Triton model configurations; use GET /v2/models/{name} for the "
            f"tensors and GET /models/{name} for the limits of this model."
        )

    @router.get("/v2/models/stats", include_in_schema=False)
    @router.get(f"{_MODEL}/stats", include_in_schema=False)
    @router.get(f"{_VERSION}/stats", include_in_schema=False)
    async def v2_model_statistics(request: Request) -> None:
        get_registry(request.app).get(request.path_params.get("name"))
        _check_version(request)
        raise NotFoundError(
            "The service has no statistics in Triton's format; use GET /metrics for the counts and "
            "durations of all models."
        )


def _add_predict(router: APIRouter) -> None:
    tags: list[Any] = ["V1 protocol"]

    # This route comes first, because Starlette takes the Allow header from the first match.
    @router.post(
        PREDICT_PATH,
        summary="Fill masks or classify texts",
        tags=tags,
        responses={200: {"model": PredictFillMaskResponse | PredictClassifyResponse}},
    )
    async def predict(request: Request, name: str) -> Response:
        body, content_type = await request.body(), request.headers.get("content-type")
        served = get_model(request, name, None)
        info = served.info
        with served.in_use:
            served.batcher.raise_if_overloaded()
            parsed = await asyncio.to_thread(
                parse_request, body, content_type, info.limits, info.tasks[0]
            )
            result = await _run(request, served, parsed, "instances")
        content = await asyncio.to_thread(response_json, result)
        return Response(content, media_type=_JSON)

    @router.get("/v1/models", summary="List the names of the served models", tags=tags)
    async def v1_models(request: Request) -> dict[str, list[str]]:
        return {"models": list(get_registry(request.app).by_served_name)}

    @router.get("/v1/models/{name}", summary="Check that the model is ready", tags=tags)
    async def v1_model(request: Request, name: str) -> dict[str, Any]:
        await get_ready_model(request.app, name)
        return {"name": name, "ready": True}


async def _run(
    request: Request, served: ServedModel, body: FillMaskRequest | ClassifyRequest, label: str
) -> FillResult | ClassificationResult:
    common: dict[str, Any] = {
        "report_errors": body.report_errors,
        "reserve": request.scope[RESERVE],
    }
    with CancelOnDisconnect(request.receive):
        if isinstance(body, FillMaskRequest):
            fill_mask = served.require_fill_mask()
            return await fill_mask.fill(body.texts, body.options, label, **common)
        classification = served.require_classification()
        return await classification.classify(body.texts, body.options, label, **common)


def _infer_response(
    name: str, request: InferRequest, result: FillResult | ClassificationResult
) -> tuple[bytes, int | None]:
    tensors = (
        fill_tensors(result.fills)
        if isinstance(result, FillResult)
        else label_tensors(result.accepted)
    )
    return response_body(name, request, tensors)


def _check_version(request: Request) -> None:
    version = request.path_params.get("version", MODEL_VERSION)
    if version != MODEL_VERSION:
        raise NotFoundError(
            f"Unknown version {quote(version)}; use version {quote(MODEL_VERSION)}."
        )
