"""The endpoints for health and for the descriptions of models."""

from fastapi import APIRouter, Request
from pydantic import BaseModel

from fillmask.api.models import get_ready_model, get_registry
from fillmask.models.served_model import ModelInfo


class HealthStatus(BaseModel):
    """Health of the service."""

    status: str


def add_service_routes(router: APIRouter) -> None:
    """Add the endpoints. All except GET /health/live respond with 503 until a model is loaded."""

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
    @router.get(
        "/models/{name:path}/info",
        summary="Describe one model",
        tags=["Service"],
        operation_id="get_model_info",
    )
    async def model(request: Request, name: str) -> ModelInfo:
        return get_registry(request.app).get(name).info
