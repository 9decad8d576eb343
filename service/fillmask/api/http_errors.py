"""Error responses of the framework, such as 404 and 405, in the service's own words."""

import re

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from fillmask.http.error_response import error_response

# paths of health checks of other servers and of Kubernetes
_HEALTH_PATHS = frozenset({"/health", "/healthz", "/live", "/livez", "/ping", "/ready", "/readyz"})


def add_http_errors(app: FastAPI) -> None:
    """Add the exception handler. RequestIdMiddleware answers the service's own exceptions."""
    app.add_exception_handler(HTTPException, _http_error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type only
    message, headers = f"{error.detail}.", error.headers
    if error.status_code == 404:
        endpoint = "an endpoint that GET /docs lists, such as POST /fill-mask"
        if request.scope["path"].rstrip("/") in _HEALTH_PATHS:
            endpoint = "GET /health/live or GET /health/ready"
        message = f"Unknown path; use {endpoint}."
    elif error.status_code == 405:
        allowed = ", ".join(_allowed_methods(request, (headers or {}).get("Allow", "GET")))
        message = f"The method {request.method[:20]} is not allowed for this path; use {allowed}."
        headers = {"Allow": allowed}
    return error_response(error.status_code, message, headers)


def _allowed_methods(request: Request, of_first: str) -> list[str]:
    """Return the methods of a path. Starlette names only those of the first route that matches."""
    routes = [
        (len(re.sub(r"{.*?}", "", route.path_format)), route.methods or set())
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    # /v1/models/a:predict is also the path of a model with the name a:predict
    longest = max((length for length, _ in routes), default=0)
    of_path = (methods for length, methods in routes if length == longest)
    methods = set[str]().union(*of_path) or {*of_first.split(", ")}
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))
