"""GET /metrics for Prometheus, on the main port or on a port of its own."""

import asyncio
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from fillmask.middleware.responses import error_response
from fillmask.observability.health import Health
from fillmask.observability.metrics import Metrics

_PATH = "/metrics"
_TEXT = {"schema": {"type": "string"}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": _TEXT, "application/openmetrics-text": _TEXT}},
}


def add_metrics_page(app: FastAPI, metrics: Metrics) -> None:
    @app.get(
        _PATH,
        summary="Metrics for Prometheus",
        tags=["Service"],
        response_class=Response,
        operation_id="metrics",
        responses=_RESPONSES,
    )
    async def scrape(request: Request) -> Response:
        return await asyncio.to_thread(_scrape, metrics, request)


def create_metrics_app(metrics: Metrics, health: Health) -> Starlette:
    """Create the application of the separate port: GET /metrics and GET /health/live.

    Its server runs on another thread than the service, so that both answer while clients keep the
    service's event loop busy. A loop that doesn't run at all is not alive.
    """

    def scrape(request: Request) -> Response:
        return _scrape(metrics, request)

    def live(_request: Request) -> Response:
        if (reason := health.not_alive_reason) is not None:
            return error_response(503, reason)
        return JSONResponse({"status": "live"})

    return Starlette(routes=[Route(_PATH, scrape), Route("/health/live", live)])


def _scrape(metrics: Metrics, request: Request) -> Response:
    content, content_type = metrics.render(request.headers.get("accept", ""))
    return Response(content, headers={"content-type": content_type})
