"""ASGI middleware that traces requests with OpenTelemetry."""

from collections.abc import Awaitable

from opentelemetry.trace import use_span
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.observability.opentelemetry import OpenTelemetryTracer, record_route, record_status

# probes and scrapers request these paths every few seconds
_UNTRACED = ("/health/", "/v2/health/", "/metrics")


class TracingMiddleware:
    """Middleware that runs each request in a span, except requests of probes and scrapers.

    Args:
        app: next ASGI application.
    """

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
                record_status(span, message["status"])
            return send(message)

        with use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                await self._app(scope, receive, send_and_record)
            finally:
                record_route(span, scope)
