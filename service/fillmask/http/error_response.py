"""Error responses, all with the body {"error": MESSAGE}."""

from collections.abc import Mapping

from starlette.responses import JSONResponse

from fillmask.errors import FillMaskError, OverloadedError, UnauthorizedError


def error_response(
    status: int, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return an error response."""
    return JSONResponse({"error": message}, status, headers)


def response_to(error: FillMaskError) -> JSONResponse:
    """Return the error response for an exception."""
    headers = {}
    if isinstance(error, OverloadedError):
        headers["Retry-After"] = str(error.retry_after_s)
    elif isinstance(error, UnauthorizedError):
        headers["WWW-Authenticate"] = "Bearer"
        headers["Connection"] = "close"  # strangers pay for each request with a new connection
    return error_response(error.status, error.text, headers)
