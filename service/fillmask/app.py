"""The ASGI application, which connects models, endpoints, middleware and error handlers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from fillmask import __version__
from fillmask.api.docs_page import add_docs_page
from fillmask.api.error_responses import add_error_responses
from fillmask.api.metrics_page import add_metrics_page
from fillmask.api.openapi import TAGS, operation_id, with_common_parts
from fillmask.api.playground_page import add_playground_page
from fillmask.api.protocols.metadata import MODEL_VERSION
from fillmask.api.protocols.routes import create_protocol_router
from fillmask.api.request_schemas import RequestSchemas, ServedTasks
from fillmask.api.routes import (
    CLASSIFY_PATH,
    FILL_MASK_PATH,
    MODEL_CLASSIFY_PATH,
    MODEL_PATH,
    ROOT_PATH,
    create_router,
)
from fillmask.api.task_endpoint import Respond, TaskEndpoint, classify, fill_masks
from fillmask.bundles.description import Task
from fillmask.engine.batcher import Batcher
from fillmask.engine.memory import return_after_bursts
from fillmask.errors import SettingsError
from fillmask.http.memory_budget import MemoryBudget
from fillmask.http.middleware.access_log import AccessLogMiddleware, BodyLogMiddleware
from fillmask.http.middleware.authentication import ApiKeys, AuthenticationMiddleware
from fillmask.http.middleware.cors import CorsMiddleware
from fillmask.http.middleware.deadline import DeadlineMiddleware
from fillmask.http.middleware.head_requests import HeadMiddleware
from fillmask.http.middleware.request_id import RequestIdMiddleware
from fillmask.http.middleware.request_memory import RequestMemoryMiddleware
from fillmask.http.throttle import THROTTLE_ABOVE_WAIT_S, ExcludedRequests, LoopThrottle
from fillmask.observability.health import Health
from fillmask.observability.statistics import ProcessStatistics
from fillmask.registry.registry import ModelRegistry
from fillmask.settings import Settings

if TYPE_CHECKING:
    from fillmask.observability.opentelemetry import OpenTelemetryTracer

# Number of threads for work that takes too long for the event loop. Two threads are enough, because
# such work is rare. Each additional thread takes memory.
LONG_WORK_THREADS = 2

# Memory budgets in bytes of all requests together, for bodies with their texts and for responses.
# docs/operations.md lists all budgets. The first bytes of each request count toward the budget of
# the connections instead.
BODIES_BYTES, FREE_BODY_BYTES = 48 * 2**20, 2**14
ANSWERS_BYTES, FREE_ANSWER_BYTES = 64 * 2**20, 2**15

_RESPOND: Mapping[Task, Respond] = {"fill-mask": fill_masks, "text-classification": classify}
_PATHS: Mapping[Task, str] = {"fill-mask": FILL_MASK_PATH, "text-classification": CLASSIFY_PATH}

# function that wraps an application in ASGI middleware
Layer = Callable[[ASGIApp], ASGIApp]


class _Endpoint(NamedTuple):
    """An ASGI application, its path template in FastAPI's syntax, and the batcher of its model."""

    path_format: str
    app: ASGIApp
    batcher: Batcher


class FillMaskApp(FastAPI):
    """A FastAPI application that routes requests for fills and labels directly to their endpoint.

    FastAPI's own routing costs 35 us of CPU time per request. The other work for a short text,
    including tokenization but not inference, costs 45 us of CPU time per request.

    Attributes:
        request_schemas: schemas of the request bodies in the OpenAPI document.
        requires_api_key: true if the service has API keys.
        task_endpoints: endpoints of POST requests for fills and labels, by path.
    """

    request_schemas: RequestSchemas
    requires_api_key: bool = False
    task_endpoints: Mapping[str, _Endpoint] = {}
    _layers: Sequence[Layer] = ()

    def add_layers(self, layers: Sequence[Layer]) -> None:
        """Wrap all endpoints in layers of middleware. The first layer is the outermost."""
        self._layers = layers
        for layer in reversed(layers):
            self.add_middleware(layer)

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document with the names of the loaded models."""
        if self.openapi_schema is None:
            models: ModelRegistry | None = getattr(self.state, "models", None)
            names = [] if models is None else list(models.by_served_name)
            allowed = {"name": names, "version": [MODEL_VERSION]}
            document = super().openapi()
            self.request_schemas.apply(document, ServedTasks.of(models), names)
            self.openapi_schema = with_common_parts(
                document, allowed, api_keys=self.requires_api_key
            )
        return self.openapi_schema

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send requests for fills and labels to their endpoint and other requests to FastAPI."""
        if (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and (endpoint := self.task_endpoints.get(scope["path"])) is not None
        ):
            scope["route"] = endpoint  # FastAPI stores its routes under the same key
            await endpoint.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def retry_after_s(self, path: str, ahead: int) -> int | None:
        """Return the value of Retry-After for a request that exceeds the limits of the queue.

        Args:
            path: path of a POST request.
            ahead: number of earlier requests without a response.

        Returns:
            Whole seconds until the client should try again. None if the queue accepts the request,
            if the path has no queue or if the service is not ready.
        """
        endpoint = self.task_endpoints.get(path)
        if endpoint is None or self.state.health.not_ready_reason is not None:
            return None
        if endpoint.batcher.estimated_wait_s > THROTTLE_ABOVE_WAIT_S:
            self.state.throttle.schedule_pause()
        queued = max(0, ahead - self.state.excluded_requests.count)
        seconds = endpoint.batcher.retry_after_s(queued)
        if seconds is not None:
            route = self.state.statistics.requests.for_route("POST", endpoint.path_format)
            route.record_rejected(429)
        return seconds

    def use_models(self, models: ModelRegistry) -> None:
        """Route all later requests to these models."""

        def endpoint(path_format: str, name: str | None, task: Task) -> _Endpoint:
            app: ASGIApp = TaskEndpoint(models, name, task, _RESPOND[task])
            for layer in reversed(self._layers):
                app = layer(app)
            return _Endpoint(path_format, app, models.get(name, task).batcher)

        served = models.by_name.values()
        endpoints = {ROOT_PATH: endpoint(ROOT_PATH, None, models.default.info.tasks[0])}
        for task, path in _PATHS.items():
            if any(task in model.info.tasks for model in served):
                endpoints[path] = endpoint(path, None, task)
        for name, model in models.by_served_name.items():
            path = MODEL_PATH.format(name=name)
            endpoints[path] = endpoint(MODEL_PATH, name, model.info.tasks[0])
        # after the other paths, because /models/a/classify is also the path of a model with the
        # name a/classify
        for name, model in models.by_served_name.items():
            if "text-classification" in model.info.tasks:
                path = MODEL_CLASSIFY_PATH.format(name=name)
                endpoints[path] = endpoint(MODEL_CLASSIFY_PATH, name, "text-classification")
        self.task_endpoints = endpoints
        self.state.models = models
        self.openapi_schema = None  # rebuilt with the new models' names


def create_app(settings: Settings) -> FillMaskApp:
    """Create the application.

    The lifespan of the application loads and verifies the models at the start and closes them at
    the end. The server reads `app.state.health`, `app.state.statistics` and `app.state.throttle`.

    Raises:
        StartupError: a setting is invalid or needs a package that is not installed. The lifespan
            raises the same error for an invalid bundle.
    """
    health = Health()
    statistics = ProcessStatistics()
    tracer = _create_tracer(settings)
    bodies_bytes = max(BODIES_BYTES, 10 * settings.max_body_bytes)
    bodies = MemoryBudget("request bodies", bodies_bytes, FREE_BODY_BYTES)
    answers = MemoryBudget("responses", ANSWERS_BYTES, FREE_ANSWER_BYTES)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(LONG_WORK_THREADS, thread_name_prefix="fillmask-long-work")
        )
        models = ModelRegistry(
            settings, health.fail, lambda: service.use_models(models), statistics, tracer
        )
        returning = asyncio.create_task(
            return_after_bursts(lambda: bodies.taken_bytes + answers.taken_bytes)
        )
        try:
            await models.load_all()
            if settings.reload_every_s:
                models.start_periodic_reload(settings.reload_every_s)
            health.ready()
            yield
        finally:
            health.stop("The service is shutting down; wait until it is ready again.")
            returning.cancel()
            await models.close()
            if tracer is not None:
                await tracer.close()

    service = FillMaskApp(
        title="fillmask",
        description="Fills masks in texts, scores texts and classifies texts with encoders.",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        # FastAPI's pages load scripts from other hosts, so docs_page replaces these pages
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=operation_id,
        openapi_tags=TAGS,
        # FastAPI's telemetry may send user input, such as bodies, queries and exception messages
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    service.state.health = health
    service.state.statistics = statistics
    service.state.throttle = LoopThrottle()
    service.state.excluded_requests = excluded_requests = ExcludedRequests()
    memory = partial(
        RequestMemoryMiddleware,
        max_body_bytes=settings.max_body_bytes,
        bodies=bodies,
        responses=answers,
        excluded_requests=excluded_requests,
    )
    # the innermost middleware, so that statistics count HEAD requests as HEAD
    service.add_middleware(HeadMiddleware)
    service.add_layers([*_tracing(tracer), *_layers(settings, statistics, memory)])
    service.include_router(create_router(health))
    service.include_router(create_protocol_router())
    service.request_schemas = RequestSchemas(settings.max_texts, settings.max_top_k)
    service.requires_api_key = settings.api_keys_file is not None
    add_docs_page(service)
    add_metrics_page(service, statistics, health, settings.metrics_port or None)
    add_playground_page(service)
    add_error_responses(service)
    return service


def _create_tracer(settings: Settings) -> "OpenTelemetryTracer | None":
    if not settings.tracing_enabled:
        return None
    try:
        from fillmask.observability.opentelemetry import OpenTelemetryTracer  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise SettingsError(
            "Tracing needs OpenTelemetry, which is not installed; run pip install "
            "'.[otel]' in a checkout or pip install 'PATH/TO/WHEEL[otel]', or set traces to off."
        ) from error
    return OpenTelemetryTracer()


def _tracing(tracer: "OpenTelemetryTracer | None") -> list[Layer]:
    if tracer is None:
        return []
    from fillmask.http.middleware.tracing import TracingMiddleware  # noqa: PLC0415 - an optional dependency

    return [partial(TracingMiddleware, tracer=tracer)]


def _layers(settings: Settings, statistics: ProcessStatistics, memory: Layer) -> list[Layer]:
    layers: list[Layer] = []
    if settings.cors_origins:  # the outermost middleware, so that pages can read all errors
        origins = [origin.strip() for origin in settings.cors_origins.split(",")]
        layers.append(partial(CorsMiddleware, origins=origins))
    access = partial(
        AccessLogMiddleware, statistics=statistics.requests, logged=settings.access_log
    )
    layers += [access, RequestIdMiddleware]
    if settings.api_keys_file is not None:
        layers.append(partial(AuthenticationMiddleware, keys=ApiKeys(settings.api_keys_file)))
    layers.append(memory)
    layers.append(partial(DeadlineMiddleware, default_ms=settings.request_timeout_ms))
    if settings.log_texts:
        layers.append(BodyLogMiddleware)
    return layers
