"""CORS middleware, which allows pages of other origins to use the service."""

from collections.abc import Sequence

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

_METHODS = ("GET", "POST")
_HEADERS = ("Authorization", "X-Request-ID", "X-Request-Timeout-Ms", "traceparent", "tracestate")


class CorsMiddleware(CORSMiddleware):
    """Starlette's CORS middleware with error messages in the format of the service.

    Args:
        app: next ASGI application.
        origins: allowed origins, or `*` for all origins.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=_METHODS,
            allow_headers=_HEADERS,
            expose_headers=["X-Request-ID", "Retry-After", "Server-Timing"],
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return the response to a preflight request, with an error message for a rejection."""
        response = super().preflight_response(request_headers)
        if response.status_code < 400:
            return response
        reason = bytes(response.body).decode()
        message = (
            f"{reason}; use an origin in the setting cors_origins, the method "
            f"{' or '.join(_METHODS)}, and only the headers Content-Type, {', '.join(_HEADERS)}."
        )
        own = {"content-type", "content-length"}
        headers = {name: value for name, value in response.headers.items() if name not in own}
        return JSONResponse({"error": message}, response.status_code, headers)
