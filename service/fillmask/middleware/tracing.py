"""Traces of requests with OpenTelemetry, whose packages are optional.

Each traced request has a span that follows the semantic conventions for HTTP. A request for a model
also has the child spans tokenize, queue and compute. Spans contain no text of clients, such as a
path, a query, a header or an exception message.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    Span,
    SpanKind,
    StatusCode,
    format_trace_id,
    get_current_span,
    set_span_in_context,
    use_span,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask import __version__
from fillmask.observability.request_context import (
    MODEL,
    OTHER_ROUTE,
    TRACE_ID,
    Arguments,
    Result,
    route_of,
)

# Time for sending the last spans. An unreachable collector must not delay the shutdown further.
CLOSE_TIMEOUT_S = 3
# probes and scrapers request these paths every few seconds
_UNTRACED = ("/health/", "/v2/health/", "/metrics")


class OpenTelemetryTracer:
    """Tracer that sends spans over OTLP, configured by the OTEL_ environment variables."""

    def __init__(self) -> None:
        own = Resource({"service.name": "fillmask", "service.version": __version__})
        self._provider = TracerProvider(
            resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("fillmask", __version__)

    async def close(self) -> None:
        """Send the remaining spans, for at most CLOSE_TIMEOUT_S seconds."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, CLOSE_TIMEOUT_S)

    def current_context(self) -> Context | None:
        span = get_current_span()
        valid = span.get_span_context().is_valid
        return set_span_in_context(span, Context()) if valid else None

    def traced(
        self, name: str, function: Callable[Arguments, Result]
    ) -> Callable[Arguments, Result]:
        def call_in_span(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            if self.current_context() is None:
                return function(*args, **kwargs)
            with self._tracer.start_as_current_span(
                name, record_exception=False, set_status_on_exception=False
            ):
                return function(*args, **kwargs)

        return call_in_span

    def record_batch(
        self,
        requests: Sequence[tuple[object, float]],
        started_s: float,
        ended_s: float,
        attributes: Mapping[str, int],
    ) -> None:
        # spans need the time of day, but batches have times of the performance counter
        offset_ns = time.time_ns() - time.perf_counter_ns()
        started_ns, ended_ns = (offset_ns + round(at * 1e9) for at in (started_s, ended_s))
        for context, arrived_s in requests:
            if context is None:
                continue
            parent = cast("Context", context)
            arrived_ns = offset_ns + round(arrived_s * 1e9)
            queue = self._tracer.start_span("queue", parent, start_time=arrived_ns)
            queue.end(started_ns)
            compute = self._tracer.start_span(
                "compute", parent, attributes=attributes, start_time=started_ns
            )
            compute.end(ended_ns)

    def start_request_span(self, scope: Scope) -> Span:
        """Start the span of a request, as a child of the span in its trace headers."""
        carrier = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        attributes = {
            "http.request.method": scope["method"],
            "url.scheme": scope["scheme"],
            "network.protocol.version": scope["http_version"],
        }
        span = self._tracer.start_span(
            scope["method"],
            propagate.extract(carrier, Context()),
            kind=SpanKind.SERVER,
            attributes=attributes,
        )
        scope[TRACE_ID] = format_trace_id(span.get_span_context().trace_id)
        return span


def _record_status(span: Span, status: int) -> None:
    """Record the status of a response. Any status of 500 or above is an error."""
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        span.set_attribute("error.type", str(status))
        span.set_status(StatusCode.ERROR)


def _record_route(span: Span, scope: Scope) -> None:
    """Record the route and the model of a request."""
    if (route := route_of(scope)) != OTHER_ROUTE:
        span.update_name(f"{scope['method']} {route}")
        span.set_attribute("http.route", route)
    if (model := scope.get(MODEL)) is not None:
        span.set_attribute("fillmask.model", model)


class TracingMiddleware:
    """Middleware that runs each request in a span, except requests of probes and scrapers."""

    def __init__(self, app: ASGIApp, tracer: OpenTelemetryTracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(_UNTRACED):
            await self._app(scope, receive, send)
            return
        span = self._tracer.start_request_span(scope)

        def send_and_record(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                _record_status(span, message["status"])
            return send(message)

        with use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                await self._app(scope, receive, send_and_record)
            finally:
                _record_route(span, scope)
