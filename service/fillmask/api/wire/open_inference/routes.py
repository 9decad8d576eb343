"""The endpoints of the Open Inference Protocol."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from fillmask import __version__
from fillmask.api.models import TaskRoute, get_ready_model, get_registry
from fillmask.api.operations import MODEL_VERSION, add_route, path_parameters
from fillmask.api.task_call import TaskCall
from fillmask.api.wire.open_inference.infer_request import InferRequest
from fillmask.api.wire.open_inference.infer_response import InferResponse, response_to
from fillmask.api.wire.open_inference.infer_schema import REQUESTS
from fillmask.api.wire.open_inference.tasks import PROTOCOL_TASKS
from fillmask.api.wire.open_inference.tensors import PLATFORM, TARGETS, TEXT, TEXT_PAIR
from fillmask.errors import NotFoundError, quote
from fillmask.models.served_model import ModelInfo

_MODEL, _VERSION = "/v2/models/{name}", "/v2/models/{name}/versions/{version}"

_WITH_VERSION: dict[str, Any] = {"parameters": path_parameters("/{version}")}
_JSON_BYTES = "inference-header-content-length"
_INFERRED: dict[str, Any] = {
    "model": InferResponse,
    "description": "The outputs, in JSON or with binary tensors after the JSON.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}


def add_open_inference_routes(router: APIRouter) -> None:
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
        return _metadata(name, info)

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

    _add_infer(router, tags)


def _add_infer(router: APIRouter, tags: list[Any]) -> None:
    for path in (_MODEL, _VERSION):
        add_route(
            router,
            TaskRoute,
            f"{path}/infer",
            _infer,
            name="infer",
            reads=REQUESTS,
            responds=_INFERRED,
            summary="Fill masks, or classify texts or tokens",
            tags=tags,
        )


async def _infer(call: TaskCall) -> Response:
    request = call.request
    _check_version(request)
    name = request.path_params["name"]
    json_bytes = request.headers.get(_JSON_BYTES)
    parsed = await call.read(
        lambda body, _type, limits: InferRequest.read(
            body, json_bytes, limits, call.served.info.tasks[0]
        )
    )
    call.check_named("model_name", parsed.model_name)
    get_registry(request.app).get(name, parsed.body.task.of_bundle)
    results, _ = await call.run(parsed.body.task, parsed.body.asked(parsed.label))
    content, head_bytes = await asyncio.to_thread(response_to, parsed, name, results)
    if head_bytes is None:
        return Response(content, media_type="application/json")
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


def _check_version(request: Request) -> None:
    version = request.path_params.get("version", MODEL_VERSION)
    if version != MODEL_VERSION:
        raise NotFoundError(
            f"Unknown version {quote(version)}; use version {quote(MODEL_VERSION)}."
        )


def _metadata(name: str, info: ModelInfo) -> dict[str, Any]:
    """Return the tensors of all tasks of a model, in their order."""
    inputs = [TEXT, *[TEXT_PAIR] * info.pairs, *[TARGETS] * ("fill-mask" in info.tasks)]
    known = [PROTOCOL_TASKS[task] for task in info.tasks if task in PROTOCOL_TASKS]
    outputs = {output: form for one in known for output, form in one.outputs.items()}
    return {
        "name": name,
        "versions": [MODEL_VERSION],
        "platform": PLATFORM,
        "inputs": [{"name": one, "datatype": "BYTES", "shape": [-1]} for one in inputs],
        "outputs": [
            {"name": one, "datatype": datatype, "shape": [-1] * axes}
            for one, (datatype, axes) in outputs.items()
        ],
    }
