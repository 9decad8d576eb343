"""Error responses, all with the body {"error": MESSAGE}."""

import functools
from collections.abc import Mapping

from starlette.responses import JSONResponse

from fillmask.errors import FillMaskError, OverloadedError, UnauthorizedError


def error_response(
    status: int, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)


def response_to(error: FillMaskError) -> JSONResponse:
    if isinstance(error, OverloadedError):
        return _overloaded(error.text, error.retry_after_s)
    headers = {}
    if isinstance(error, UnauthorizedError):
        headers["WWW-Authenticate"] = "Bearer"
        headers["Connection"] = "close"  # strangers pay for each request with a new connection
    return error_response(error.status, error.text, headers)


# An overloaded service sends the same few responses thousands of times per second.
@functools.lru_cache(maxsize=64)
def _overloaded(text: str, retry_after_s: int) -> JSONResponse:
    return error_response(OverloadedError.status, text, {"Retry-After": str(retry_after_s)})
