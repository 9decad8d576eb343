"""Error responses of the framework, such as 404 and 405, in the service's own words."""

import re
from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from fillmask.api.models import endpoints_of
from fillmask.middleware.responses import error_response
from fillmask.models.registry import ModelRegistry

# paths of health checks of other servers and of Kubernetes
_HEALTH_PATHS = frozenset({"/health", "/healthz", "/live", "/livez", "/ping", "/ready", "/readyz"})

# what this service lacks -> its usual paths in text-embeddings-inference, OpenAI and others
_ABSENT: Mapping[str, frozenset[str]] = {
    "makes no dense embeddings": frozenset(
        {"/embed", "/embed_all", "/embeddings", "/similarity", "/v1/embeddings"}
    ),
    "generates no text": frozenset(
        {
            "/generate",
            "/generate_stream",
            "/v1/chat/completions",
            "/v1/completions",
            "/v1/responses",
        }
    ),
}


def add_http_errors(app: FastAPI) -> None:
    """Add the exception handler. RequestIdMiddleware answers the service's own exceptions."""
    app.add_exception_handler(HTTPException, _http_error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type only
    message, headers = f"{error.detail}.", error.headers
    if error.status_code == 404:
        message = f"Unknown path; {_advice(request.app, request.scope['path'].rstrip('/'))}."
    elif error.status_code == 405:
        allowed = ", ".join(_allowed_methods(request, (headers or {}).get("Allow", "GET")))
        message = f"The method {request.method[:20]} is not allowed for this path; use {allowed}."
        headers = {"Allow": allowed}
    return error_response(error.status_code, message, headers)


def _advice(app: FastAPI, path: str) -> str:
    if path in _HEALTH_PATHS:
        return "use GET /health/live or GET /health/ready"
    models: ModelRegistry | None = getattr(app.state, "models", None)
    for absent, paths in _ABSENT.items():
        if path in paths and models is not None:
            found = (
                endpoint
                for served in models.by_name.values()
                for task in served.info.tasks
                for endpoint in endpoints_of(app, served, task)
            )
            return f"this service {absent}; its models have {', '.join(dict.fromkeys(found))}"
    return "use an endpoint that GET /docs lists, such as POST /fill-mask"


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
