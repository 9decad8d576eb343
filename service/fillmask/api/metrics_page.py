"""The endpoint GET /metrics for Prometheus."""

import asyncio
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException

from fillmask.api.bodies.request_body import ErrorResponse
from fillmask.observability.health import Health
from fillmask.observability.metrics import Metrics, ModelState
from fillmask.observability.statistics import ProcessStatistics
from fillmask.registry.registry import ModelRegistry

METRICS_PATH = "/metrics"
_TEXT = {"schema": {"type": "string"}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": _TEXT, "application/openmetrics-text": _TEXT}},
    404: {"model": ErrorResponse, "description": "Only another port serves metrics."},
}


def add_metrics_page(
    app: FastAPI, statistics: ProcessStatistics, health: Health, own_port: int | None
) -> None:
    """Add GET /metrics to an application.

    If `own_port` is not None, only this port serves the metrics.
    """

    def states() -> list[ModelState]:
        models: ModelRegistry | None = getattr(app.state, "models", None)
        return [] if models is None else models.states

    metrics = Metrics(statistics, states, lambda: health.not_ready_reason)
    router = APIRouter()

    @router.get(
        METRICS_PATH,
        summary="Metrics for Prometheus",
        tags=["Service"],
        response_class=Response,
        operation_id="metrics",
        responses=_RESPONSES,
    )
    async def scrape(request: Request) -> Response:
        if own_port is not None and request.scope["server"][1] != own_port:
            raise HTTPException(404)
        accept = request.headers.get("accept", "")
        content, content_type = await asyncio.to_thread(metrics.render, accept)
        return Response(content, headers={"content-type": content_type})

    app.include_router(router)
