"""create_app: all the wiring, from the settings to an application that is ready."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from service import __version__
from service.api.docs_page import add_docs_page
from service.api.fill_mask import FillMaskEndpoint
from service.api.metrics_page import add_metrics_page
from service.api.openapi import allowed_methods, with_common_parts
from service.api.playground_page import add_playground_page
from service.api.protocols.open_inference import MODEL_VERSION
from service.api.protocols.routes import create_protocol_router
from service.api.routes import FILL_MASK_PATH, MODEL_PATH, ROOT_PATH, create_router
from service.engine.batcher import Batcher
from service.engine.memory import return_after_bursts
from service.errors import FillMaskError, OverloadedError, SettingsError
from service.http.disconnect import ClientDisconnectedError
from service.http.memory_budget import MemoryBudget
from service.http.middleware.access_log import AccessLogMiddleware, BodyLogMiddleware
from service.http.middleware.authentication import ApiKeys, AuthenticationMiddleware
from service.http.middleware.cors import CorsMiddleware
from service.http.middleware.deadline import DeadlineMiddleware
from service.http.middleware.head import HeadMiddleware
from service.http.middleware.request_id import RequestIdMiddleware
from service.http.middleware.request_memory import RequestMemoryMiddleware
from service.http.throttle import THROTTLE_ABOVE_WAIT_S, ExcludedRequests, LoopThrottle
from service.observability.health import Health
from service.observability.statistics import ProcessStatistics
from service.registry.registry import ModelRegistry
from service.settings import Settings

if TYPE_CHECKING:
    from service.observability.opentelemetry import OpenTelemetryTracer

LONG_WORK_THREADS = 2

# The terms of the memory budget in docs/operations.md that all requests share: what is held of
# their bodies, with the texts in them, and of their answers. Of each request the first bytes are
# free, and counted among those of its connection.
BODIES_BYTES, FREE_BODY_BYTES = 48 * 2**20, 2**14
ANSWERS_BYTES, FREE_ANSWER_BYTES = 64 * 2**20, 2**15

# puts itself around an application
Layer = Callable[[ASGIApp], ASGIApp]


class _Endpoint(NamedTuple):
    """What answers at a path, what computes it, and the path's template as FastAPI has it."""

    path_format: str
    app: ASGIApp
    batcher: Batcher


class FillMaskApp(FastAPI):
    """FastAPI, past which the requests that count go straight to their endpoint.

    FastAPI's own way there and back costs 35 us of CPU; all that is done here with a short text,
    tokenizing included, costs 45.

    Attributes:
        fill_mask_endpoints: by their paths, what answers the POST requests that ask for fills.
    """

    fill_mask_endpoints: Mapping[str, _Endpoint] = {}
    _layers: Sequence[Layer] = ()

    def add_layers(self, layers: Sequence[Layer]) -> None:
        """Put middleware around all endpoints, the outermost first."""
        self._layers = layers
        for layer in reversed(layers):
            self.add_middleware(layer)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, with the names of the models once they are known."""
        if self.openapi_schema is None:
            models: ModelRegistry | None = getattr(self.state, "models", None)
            names = [] if models is None else list(models.by_name)
            allowed = {"name": names, "version": [MODEL_VERSION]}
            self.openapi_schema = with_common_parts(super().openapi(), allowed)
        return self.openapi_schema

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and (endpoint := self.fill_mask_endpoints.get(scope["path"])) is not None
        ):
            scope["route"] = endpoint  # where FastAPI notes its own
            await endpoint.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def retry_after_s(self, path: str, ahead: int) -> int | None:
        """Refuse a request for fills, if there is no room for it.

        Args:
            path: of the request.
            ahead: requests that have come before it and have no answer yet.

        Returns:
            Seconds after which there should be room; None where there is.
        """
        endpoint = self.fill_mask_endpoints.get(path)
        if endpoint is None or self.state.health.not_ready_reason is not None:
            return None
        if endpoint.batcher.estimated_wait_s > THROTTLE_ABOVE_WAIT_S:
            self.state.throttle.schedule_pause()
        seconds = endpoint.batcher.retry_after_s(max(0, ahead - self.state.excluded_requests.count))
        if seconds is not None:
            route = self.state.statistics.requests.for_route("POST", endpoint.path_format)
            route.record_rejected(429)
        return seconds

    def use_models(self, models: ModelRegistry) -> None:
        """Take these models from the next request on."""

        def endpoint(path_format: str, name: str | None = None) -> _Endpoint:
            app: ASGIApp = FillMaskEndpoint(models, name)
            for layer in reversed(self._layers):
                app = layer(app)
            return _Endpoint(path_format, app, models.get(name).batcher)

        self.fill_mask_endpoints = {
            FILL_MASK_PATH: endpoint(FILL_MASK_PATH),
            ROOT_PATH: endpoint(ROOT_PATH),
            **{MODEL_PATH.format(name=name): endpoint(MODEL_PATH, name) for name in models.by_name},
        }
        self.state.models = models
        self.openapi_schema = None  # it has their names


def create_app(settings: Settings) -> FillMaskApp:
    """The service; its lifespan loads and verifies the models, and drains them at the end.

    `app.state.health` tells whether it can answer; end it to have it say that it stops.
    `app.state.statistics` and `app.state.throttle` are to be told of connections.

    Raises:
        StartupError: a setting is no good; or, when the lifespan begins, a bundle.
    """
    health = Health()
    statistics = ProcessStatistics()
    traces = _open_traces(settings)
    bodies_bytes = max(BODIES_BYTES, 10 * settings.max_body_bytes)
    bodies = MemoryBudget("bodies", bodies_bytes, FREE_BODY_BYTES)
    answers = MemoryBudget("answers", ANSWERS_BYTES, FREE_ANSWER_BYTES)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        # for what would stall the event loop; it is rare, and each thread keeps memory of its own
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(LONG_WORK_THREADS, thread_name_prefix="fillmask-long-work")
        )
        models = ModelRegistry(
            settings, health.fail, lambda: service.use_models(models), statistics, traces
        )
        returning = asyncio.create_task(
            return_after_bursts(lambda: bodies.taken_bytes + answers.taken_bytes)
        )
        try:
            await models.open()
            if settings.reload_every_s:
                models.reload_every(settings.reload_every_s)
            health.ready()
            yield
        finally:
            health.stop("The service is shutting down.")
            returning.cancel()
            await models.close()
            if traces is not None:
                await traces.close()

    service = FillMaskApp(
        title="fillmask",
        description="Fills the masks of a text with the words a language model finds likely.",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        # their pages load scripts from elsewhere; docs_page has its own
        docs_url=None,
        redoc_url=None,
        # FastAPI's own may send what callers have written: bodies, queries, texts of exceptions
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
    service.add_middleware(
        HeadMiddleware
    )  # the innermost, so that requests are counted by their own method
    service.add_layers([*_tracing(traces), *_layers(settings, statistics, memory)])
    service.include_router(create_router(health, settings.max_texts, settings.max_top_k))
    service.include_router(create_protocol_router(settings.max_texts, settings.max_top_k))
    add_docs_page(service)
    add_metrics_page(service, statistics, health, settings.metrics_port or None)
    add_playground_page(service)
    service.add_exception_handler(FillMaskError, _answer_error)
    service.add_exception_handler(ClientDisconnectedError, _answer_nobody)
    service.add_exception_handler(HTTPException, _answer_http_exception)
    return service


def _open_traces(settings: Settings) -> "OpenTelemetryTracer | None":
    if not settings.traced:
        return None
    try:
        from service.observability.opentelemetry import OpenTelemetryTracer  # noqa: PLC0415 - its packages need not be installed
    except ImportError as error:
        raise SettingsError(
            "Traces are asked for, and OpenTelemetry's packages are not installed; install "
            "fillmask[otel], or set traces to off."
        ) from error
    return OpenTelemetryTracer()


def _tracing(traces: "OpenTelemetryTracer | None") -> list[Layer]:
    if traces is None:
        return []
    from service.http.middleware.tracing import TracingMiddleware  # noqa: PLC0415 - as above

    return [partial(TracingMiddleware, tracer=traces)]


def _layers(settings: Settings, statistics: ProcessStatistics, memory: Layer) -> list[Layer]:
    layers: list[Layer] = []
    if settings.cors_origins:  # outside of all: a page must be able to read errors too
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


async def _answer_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FillMaskError)  # noqa: S101 - what it is registered for
    headers = None
    if isinstance(error, OverloadedError):
        headers = {"Retry-After": str(error.retry_after_s)}
    return JSONResponse({"error": error.text}, error.status, headers)


async def _answer_nobody(_request: Request, _error: Exception) -> Response:
    return Response(status_code=499)  # what nginx logs for it; the connection has ended


async def _answer_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
    sentence = f"{error.detail}."
    if error.status_code == 404:
        sentence = "There is nothing at this path; POST /fill-mask fills masks, /docs says more."
    headers = error.headers
    if error.status_code == 405 and headers:
        # Starlette knows only the methods of the first endpoint that has the path
        documented = allowed_methods(request.app.openapi(), request.url.path)
        methods = {*headers["Allow"].split(", "), *documented}
        if "GET" in methods:
            methods.add("HEAD")
        allowed = ", ".join(sorted(methods))
        sentence = f"The method {request.method[:20]} is not allowed here; allowed is {allowed}."
        headers = {"Allow": allowed}
    return JSONResponse({"error": sentence}, error.status_code, headers)
