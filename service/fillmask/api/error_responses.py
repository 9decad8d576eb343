"""JSON responses for exceptions in FastAPI's routes."""

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from fillmask.api.openapi import allowed_methods
from fillmask.errors import FillMaskError, OverloadedError
from fillmask.http.disconnect import ClientDisconnectedError

# paths of health checks of other servers and of Kubernetes
_HEALTH_PATHS = frozenset({"/health", "/healthz", "/live", "/livez", "/ping", "/ready", "/readyz"})


def add_error_responses(app: FastAPI) -> None:
    """Add the exception handlers of FastAPI's routes."""
    app.add_exception_handler(FillMaskError, _fill_mask_error)
    app.add_exception_handler(ClientDisconnectedError, _client_disconnected)
    app.add_exception_handler(HTTPException, _http_error)


async def _fill_mask_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FillMaskError)  # noqa: S101 - registered for this type only
    headers = None
    if isinstance(error, OverloadedError):
        headers = {"Retry-After": str(error.retry_after_s)}
    return JSONResponse({"error": error.text}, error.status, headers)


async def _client_disconnected(_request: Request, _error: Exception) -> Response:
    return Response(status_code=499)  # the status that nginx logs for a closed connection


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type only
    message = f"{error.detail}."
    if error.status_code == 404:
        endpoint = "an endpoint that GET /docs lists, such as POST /fill-mask"
        if request.scope["path"].rstrip("/") in _HEALTH_PATHS:
            endpoint = "GET /health/live or GET /health/ready"
        message = f"Unknown path; use {endpoint}."
    headers = error.headers
    if error.status_code == 405 and headers:
        # Starlette's own header contains only the methods of the first matching route
        documented = allowed_methods(request.app.openapi(), request.url.path)
        methods = {*headers["Allow"].split(", "), *documented}
        if "GET" in methods:
            methods.add("HEAD")
        allowed = ", ".join(sorted(methods))
        message = f"The method {request.method[:20]} is not allowed for this path; use {allowed}."
        headers = {"Allow": allowed}
    return JSONResponse({"error": message}, error.status_code, headers)
