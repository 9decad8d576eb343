"""CORS: pages of the allowed origins may send requests and read the answers."""

from collections.abc import Sequence

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

_METHODS = ("GET", "POST")
_HEADERS = ("Authorization", "X-Request-ID", "X-Request-Timeout-Ms", "traceparent", "tracestate")


class CorsMiddleware(CORSMiddleware):
    """Starlette's middleware, with errors in the service's own format.

    Args:
        app: the application below.
        origins: allowed ones, or `*`.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=_METHODS,
            allow_headers=_HEADERS,
            expose_headers=["X-Request-ID", "Retry-After"],
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a preflight request; a rejected one says what is allowed."""
        answer = super().preflight_response(request_headers)
        if answer.status_code < 400:
            return answer
        reason = bytes(answer.body).decode()
        message = (
            f"{reason}; allowed are the origins of the service's cors_origins, the methods "
            f"{', '.join(_METHODS)} and the headers Content-Type, {', '.join(_HEADERS)}."
        )
        own = {"content-type", "content-length"}
        headers = {name: value for name, value in answer.headers.items() if name not in own}
        return JSONResponse({"error": message}, answer.status_code, headers)
