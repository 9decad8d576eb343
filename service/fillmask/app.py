"""The ASGI application, which connects models, endpoints, middleware and error handlers."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Receive, Scope, Send

from fillmask import __version__
from fillmask.api.http_errors import add_http_errors
from fillmask.api.metrics_page import add_metrics_page
from fillmask.api.openapi import DESCRIPTION, TAGS, complete
from fillmask.api.operations import ERRORS, error_responses, operation_id
from fillmask.api.pages import add_docs_page, add_playground_page
from fillmask.api.routes import add_task_routes
from fillmask.api.service_routes import add_service_routes
from fillmask.api.wire.cohere import add_rerank_routes
from fillmask.api.wire.hugging_face import add_hugging_face_routes
from fillmask.api.wire.kserve_v1 import add_predict_routes
from fillmask.api.wire.open_inference.routes import add_open_inference_routes
from fillmask.api.wire.tei import add_tei_routes
from fillmask.concurrency import LONG_WORK_THREADS
from fillmask.engine.linux.memory import return_after_bursts
from fillmask.errors import SHUTTING_DOWN, SettingsError
from fillmask.middleware.access_log import AccessLogMiddleware, BodyLogMiddleware
from fillmask.middleware.authentication import ApiKeys, AuthenticationMiddleware
from fillmask.middleware.cancellation import DeadlineMiddleware
from fillmask.middleware.responses import HeadMiddleware, RequestIdMiddleware
from fillmask.middleware.transfer import MemoryBudget, TransferMiddleware
from fillmask.models.registry import ModelRegistry
from fillmask.models.served_model import ServedModel
from fillmask.models.state_collector import StateCollector
from fillmask.observability.health import Health
from fillmask.observability.metrics import Metrics
from fillmask.settings import Settings

if TYPE_CHECKING:
    from fillmask.middleware.tracing import OpenTelemetryTracer

# Memory budget in bytes of the bodies and responses of all requests together. The first bytes of
# each request are free. docs/operations.md lists all budgets.
BUDGET_BYTES, FREE_BYTES = 112 * 2**20, 2**15

_CORS_HEADERS = (
    "Authorization",
    "X-Request-ID",
    "X-Request-Timeout-Ms",
    "traceparent",
    "tracestate",
)
_EXPOSED_HEADERS = ("X-Request-ID", "Retry-After", "Server-Timing", "X-Warnings")


class FillMaskApp(FastAPI):
    """A FastAPI application whose OpenAPI document names the loaded models."""

    settings: Settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request. The middleware is for requests, not for the lifespan."""
        if scope["type"] == "lifespan":
            await self.router({**scope, "app": self}, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            models: ModelRegistry | None = getattr(self.state, "models", None)
            complete(
                super().openapi(),
                [] if models is None else list(models.by_served_name),
                max_texts=self.settings.max_texts,
                max_top_k=self.settings.max_top_k,
                api_keys=self.settings.api_keys_file is not None,
            )
        return super().openapi()

    def use_models(self, models: ModelRegistry) -> None:
        self.state.models = models
        self.openapi_schema = None  # rebuilt with the new models' names


def create_app(settings: Settings) -> FillMaskApp:
    """Create the application.

    The lifespan of the application loads and verifies the models at the start and closes them at
    the end. The server reads `app.state.health` and `app.state.metrics`.

    Raises:
        StartupError: a setting is invalid or needs a package that is not installed. The lifespan
            raises the same error for an invalid bundle.
    """
    health = Health()
    metrics = Metrics()
    metrics.add(StateCollector(lambda: _models(service), lambda: health.not_ready_reason))
    tracer = _create_tracer(settings)
    budget = MemoryBudget(max(BUDGET_BYTES, 20 * settings.max_body_bytes), FREE_BYTES)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(LONG_WORK_THREADS, thread_name_prefix="fillmask-long-work")
        )
        models = ModelRegistry(
            settings, health.fail, lambda: service.use_models(models), metrics, tracer
        )
        background = [
            asyncio.create_task(return_after_bursts(lambda: budget.taken_bytes)),
            asyncio.create_task(health.beat()),
        ]
        try:
            await models.load_all()
            if settings.reload_every_s:
                models.start_periodic_reload(settings.reload_every_s)
            health.ready()
            yield
        finally:
            health.stop(SHUTTING_DOWN)
            for task in background:
                task.cancel()
            await models.close()
            if tracer is not None:
                await tracer.close()

    service = FillMaskApp(
        title="fillmask",
        description=DESCRIPTION,
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        # FastAPI's pages load scripts from other hosts, so ours replace them
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=operation_id,
        openapi_tags=TAGS,
        responses=error_responses(ERRORS),
        # FastAPI's telemetry may send user input, such as bodies, queries and exception messages
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    service.settings = settings
    service.state.health = health
    service.state.metrics = metrics
    _add_middleware(service, settings, budget, tracer)
    add_task_routes(service.router)
    add_rerank_routes(service.router)
    add_tei_routes(service.router)
    add_hugging_face_routes(service.router)
    add_open_inference_routes(service.router)
    add_predict_routes(service.router)
    if not settings.metrics_port:
        add_metrics_page(service, metrics)
    add_playground_page(service)
    add_service_routes(service.router)
    add_docs_page(service)
    add_http_errors(service)
    return service


def _models(app: FastAPI) -> list[ServedModel]:
    models: ModelRegistry | None = getattr(app.state, "models", None)
    return [] if models is None else list(models.by_name.values())


def _create_tracer(settings: Settings) -> "OpenTelemetryTracer | None":
    if not settings.tracing_enabled:
        return None
    try:
        from fillmask.middleware.tracing import OpenTelemetryTracer  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise SettingsError(
            "Tracing needs OpenTelemetry, which is not installed; run pip install "
            "'.[otel]' in a checkout or pip install 'PATH/TO/WHEEL[otel]', or set traces to off."
        ) from error
    return OpenTelemetryTracer()


def _add_middleware(
    app: FastAPI, settings: Settings, budget: MemoryBudget, tracer: "OpenTelemetryTracer | None"
) -> None:
    """Add the middleware, the innermost first."""
    health: Health = app.state.health
    app.add_middleware(HeadMiddleware)
    if settings.log_texts:
        app.add_middleware(BodyLogMiddleware)
    app.add_middleware(DeadlineMiddleware, default_ms=settings.request_timeout_ms)
    if settings.api_keys_file is not None:
        app.add_middleware(AuthenticationMiddleware, keys=ApiKeys(settings.api_keys_file))
    app.add_middleware(RequestIdMiddleware)
    app.add_middleware(
        TransferMiddleware,
        max_body_bytes=settings.max_body_bytes,
        budget=budget,
        is_stopping=lambda: health.stopping,
    )
    app.add_middleware(AccessLogMiddleware, metrics=app.state.metrics, logged=settings.access_log)
    if tracer is not None:
        from fillmask.middleware.tracing import TracingMiddleware  # noqa: PLC0415 - an optional dependency

        app.add_middleware(TracingMiddleware, tracer=tracer)
    if settings.cors_origins:  # the outermost middleware, so that pages can read all errors
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[origin.strip() for origin in settings.cors_origins.split(",")],
            allow_methods=("GET", "POST"),
            allow_headers=_CORS_HEADERS,
            expose_headers=_EXPOSED_HEADERS,
        )
