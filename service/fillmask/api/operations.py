"""Routes that read their bodies themselves, and what the OpenAPI document says about them."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from fillmask.api.models import TaskRoute
from fillmask.api.task_call import TaskCall, endpoint_of
from fillmask.middleware.cancellation import MAX_TIMEOUT_MS
from fillmask.tasks.result import ErrorResponse

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
BODIES: set[type[BaseModel]] = set()  # that `add_route` has described
_MODEL = "/models/{name:path}"
MODEL_VERSION = "1"


def operation_id(route: APIRoute) -> str:
    """Return the id of an operation, which generators of clients use as the name of a function.

    The id is the name of the endpoint's Python function. Paths with and without a version or the
    name of a model have the same function.
    """
    if route.path.startswith(f"{_MODEL}/"):
        return f"{route.name}_with_model"
    return f"{route.name}_of_version" if "{version}" in route.path else route.name


def error_responses(errors: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    # with "model", FastAPI would make a validator of each response of each route, for 0.1 s in all
    schema = {"$ref": f"{COMPONENTS}{ErrorResponse.__name__}"}
    return {
        status: {"description": text, "content": {"application/json": {"schema": schema}}}
        for status, text in errors.items()
    }


def add_route(
    router: APIRouter,
    route: type[TaskRoute],
    path: str,
    answer: Callable[[TaskCall], Awaitable[Response]],
    *,
    reads: Sequence[type[BaseModel]],
    responds: Any,
    with_model: bool = False,
    **keywords: Any,
) -> None:
    """Add a route that reads one of several bodies.

    Such a route parses its body itself: outside the event loop if it is long, and with the limits
    of the model.

    Args:
        answer: function that answers a call.
        responds: type of the response, or its description.
        with_model: whether the endpoint also is below the name of a model.
        keywords: arguments of `APIRouter.add_api_route`.
    """
    BODIES.update(reads)
    schemas = [{"$ref": f"{COMPONENTS}{model.__name__}"} for model in reads]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    described = responds if isinstance(responds, dict) else {"model": responds}
    for one in (path, f"{_MODEL}{path}") if with_model else (path,):
        router.add_api_route(
            one,
            endpoint_of(answer),
            methods=["POST"],
            route_class_override=route,
            responses={200: described, **error_responses(_BODY_ERRORS)},
            openapi_extra={
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": schema}},
                },
                "parameters": [*path_parameters(one), _TIMEOUT],
            },
            **keywords,
        )


def path_parameters(path: str) -> list[dict[str, Any]]:
    """Return the parameters in a path, which the signature of its function need not have."""
    version = {"enum": [MODEL_VERSION]}
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string"} | (version if name == "version" else {}),
        }
        for name in re.findall(r"{(\w+)", path)
    ]
