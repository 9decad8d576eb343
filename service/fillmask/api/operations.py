"""Descriptions of routes that read their bodies themselves, and of their errors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel

from fillmask.api.bodies.request_body import ErrorResponse
from fillmask.api.task_route import Endpoint, TaskRoute
from fillmask.http.middleware.deadline import MAX_TIMEOUT_MS

# errors of every operation
ERRORS: Mapping[int, str] = {
    400: "The body is not valid JSON, or a header is invalid.",
    401: "The request has no API key, or the server does not know the key.",
    404: "No model has that name or version.",
    500: "The service has an internal error. Its log contains the request id.",
    503: "The service is starting, is stopping or has failed.",
    504: "The request exceeds its time limit.",
}
# further errors of operations with a body
_BODY_ERRORS: Mapping[int, str] = {
    408: "The request does not arrive in time.",
    413: "The body is too large.",
    415: "The content type is not application/json, or the body is compressed.",
    422: "A parameter or an input is invalid. The error states the reason.",
    429: "The service is overloaded. The header Retry-After contains the delay in seconds.",
}
_TIMEOUT = {
    "name": "X-Request-Timeout-Ms",
    "in": "header",
    "required": False,
    "description": "Time limit of the request in milliseconds. A late response has status 504.",
    "schema": {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS},
}
COMPONENTS = "#/components/schemas/"
BODIES: set[type[BaseModel]] = set()  # that `operation` has described
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}


def operation_id(route: APIRoute) -> str:
    """Return the id of an operation, which generators of clients use as the name of a function.

    The id is the name of the endpoint's Python function. Paths with and without a version or the
    name of a model have the same function.
    """
    if route.path.startswith("/models/{name:path}/"):
        return f"{route.name}_with_model"
    return f"{route.name}_of_version" if "{version}" in route.path else route.name


def error_responses(errors: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return errors by status in the form that FastAPI reads."""
    return {
        status: {"model": ErrorResponse, "description": description}
        for status, description in errors.items()
    }


def operation(
    reads: Sequence[type[BaseModel]],
    responds: dict[str, Any],
    parameters: Sequence[dict[str, Any]] = (),
    **keywords: Any,
) -> dict[str, Any]:
    """Return the keyword arguments of a route that reads one of several bodies.

    Such a route parses its body itself: outside the event loop if it is long, and with the limits
    of the model.

    Args:
        responds: the description of a response with status 200.
        parameters: path parameters that are not in the signature of the route.
        keywords: further keyword arguments of the route.
    """
    BODIES.update(reads)
    schemas = [{"$ref": f"{COMPONENTS}{model.__name__}"} for model in reads]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {
        **keywords,
        "responses": {200: responds, **error_responses(_BODY_ERRORS)},
        "openapi_extra": {
            "requestBody": body,
            "parameters": [_TIMEOUT, *parameters],
        },
    }


def with_model(
    route: type[TaskRoute], router: APIRouter, path: str, described: dict[str, Any]
) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator that adds an endpoint, and once more below the name of a model."""
    extra = described["openapi_extra"]
    named = {**extra, "parameters": [_NAME, *extra["parameters"]]}

    def add(endpoint: Endpoint) -> Endpoint:
        route.post(router, path, **described)(endpoint)
        below = f"/models/{{name:path}}{path}"
        return route.post(router, below, **described | {"openapi_extra": named})(endpoint)

    return add
