"""Parts of the OpenAPI document that FastAPI does not generate."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.routing import APIRoute

from fillmask.api.bodies.json_schema import COMPONENTS_PATH, reference
from fillmask.http.middleware.authentication import is_public
from fillmask.http.middleware.deadline import MAX_TIMEOUT_MS

# groups of operations, in the order of the document and of the page
TAGS: list[dict[str, Any]] = [
    {"name": "Fills", "description": "The best tokens, words or targets in place of masks."},
    {"name": "Scores", "description": "The log-probability of each token of a text."},
    {"name": "Labels", "description": "The labels of texts."},
    {"name": "Hugging Face", "description": "Further paths for Hugging Face's clients."},
    {"name": "Open Inference Protocol v2", "description": "For Triton's and KServe's clients."},
    {"name": "V1 protocol", "description": "For clients of TensorFlow Serving and KServe."},
    {"name": "Service", "description": "Models, health, metrics and the playground."},
]

# Rules for requests with texts that a JSON schema cannot express, because a rule needs the
# model's tokenizer or compares two parts of a request.
BEYOND_THE_SCHEMA = """

- The model has the task (`tasks` in GET /info). Only a model with `pairs` reads pairs.
- A text or a pair to fill contains at least one mask (`mask_token` in GET /info). A text to score
  contains no mask. No text contains another special token. Every text has at least one token.
- A request stays within the `limits` in GET /info for tokens, masks and passes. It has at most
  65,536 JSON values and 262,144 bytes of targets.
- The model's vocabulary can spell each target.
- A list of parameters requires a list with the same number of texts.
- With `on_long_text` "window", an overlong pair has all its masks in `text`.
- A text to score starts with its `prefix`. Its `span` starts before it ends, and ends within the
  text. A prefix or a span cuts no token and leaves at least one token to score.
- `prefix` and `span` are mutually exclusive. For a pair, they require `part`. Only a pair has the
  part "text_pair".
- `targets`, `granularity` "word" and `strategy` "joint" are mutually exclusive. With
  `strategy` "joint", all masks of a text fit into one input of the model.
- The shape of a tensor matches its number of elements. One tensor contains the texts. The tensors
  named "text_pair", with one element per text, and "targets" are optional.
- `model_name` names the model in the path.
"""

_ERRORS = {
    400: "The body is not valid JSON, or a header is invalid.",
    401: "The request has no API key, or the server does not know the key.",
    404: "No model has that name or version.",
    408: "The request does not arrive in time.",
    413: "The body is too large.",
    415: "The content type is not application/json, or the body is compressed.",
    422: "A parameter or an input is invalid. The error states the reason. The request does not "
    "match the schema or breaks a rule that a schema cannot express. Examples of these rules:"
    + BEYOND_THE_SCHEMA,
    429: "The service is overloaded. The header Retry-After contains the delay in seconds.",
    431: "The headers of the request are too large.",
    500: "The service has an internal error. Its log contains the request id.",
    503: "The service is starting, is stopping or has failed.",
    504: "The request exceeds its time limit.",
}
_API_KEY = "ApiKey"
# schemas of the parameters with a fixed set of values
_VALUES = {"name": "ModelName", "version": "ModelVersion"}
_TIMEOUT = {
    "name": "X-Request-Timeout-Ms",
    "in": "header",
    "required": False,
    "description": "Time limit of the request in milliseconds. A late response has status 504.",
    "schema": {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS},
}


def operation_id(route: APIRoute) -> str:
    """Return the id of an operation, which generators of clients use as the name of a function.

    The id is the name of the endpoint's Python function. A path with a version and the path without
    the version have the same function.
    """
    return f"{route.name}_of_version" if "{version}" in route.path else route.name


def with_common_parts(
    document: dict[str, Any], allowed: Mapping[str, Sequence[str]], *, api_keys: bool
) -> dict[str, Any]:
    """Add the timeout header, the errors, the API key and the allowed values of parameters.

    The function also sorts the paths by their tags and removes unused schemas.

    Args:
        document: FastAPI's OpenAPI document with the request bodies.
        allowed: allowed values of path parameters, by parameter name.
        api_keys: true if the service requires API keys.
    """
    components = document["components"]
    for parameter, values in allowed.items():
        if values:
            components["schemas"][_VALUES[parameter]] = {"type": "string", "enum": list(values)}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            closed = api_keys and not is_public(method.upper(), path)
            if closed:
                operation["security"] = [{_API_KEY: []}]
            own = operation.get("parameters", [])
            for parameter in own:
                if allowed.get(parameter["name"]):
                    parameter["schema"] = reference(_VALUES[parameter["name"]])
            operation["parameters"] = [*own, _TIMEOUT]
            _add_errors(operation, {401: closed, 404: own, 422: "requestBody" in operation})
    components["responses"] = {
        _error_name(status): _error(text) for status, text in _ERRORS.items()
    }
    if api_keys:
        components["securitySchemes"] = {_API_KEY: {"type": "http", "scheme": "bearer"}}
    else:
        del components["responses"][_error_name(401)]
    document["paths"] = dict(sorted(document["paths"].items(), key=_rank))
    _remove_unused_schemas(document)
    return document


def _add_errors(operation: dict[str, Any], possible: Mapping[int, object]) -> None:
    """Add references to the errors of an operation.

    Args:
        possible: statuses that only some operations have, with a true value for this operation.
    """
    responses = operation["responses"]
    responses.pop("422", None)  # FastAPI's own error, which this service does not send
    for status in _ERRORS:
        if possible.get(status, True):
            responses.setdefault(
                str(status), {"$ref": f"#/components/responses/{_error_name(status)}"}
            )


def _error_name(status: int) -> str:
    return f"Error{status}"


def _error(description: str) -> dict[str, Any]:
    schema = reference("ErrorResponse")
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _rank(path: tuple[str, dict[str, Any]]) -> tuple[int, bool]:
    """Return the position of a path's first tag, with paths of the default model first."""
    template, operations = path
    order = [tag["name"] for tag in TAGS]
    tags = {tag for operation in operations.values() for tag in operation["tags"]}
    return min(map(order.index, tags)), "{" in template


def _remove_unused_schemas(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    used: set[str] = set()
    waiting: list[Any] = [document["paths"], document["components"]["responses"]]
    while waiting:
        found = set(re.findall(f'"{COMPONENTS_PATH}(.+?)"', json.dumps(waiting.pop()))) - used
        used |= found
        waiting += [schemas[name] for name in found]
    document["components"]["schemas"] = {name: schemas[name] for name in sorted(used)}


def allowed_methods(document: dict[str, Any], path: str) -> list[str]:
    """Return the HTTP methods of a path.

    If several path templates match, the template with the longest fixed text applies.
    """
    fitting = [
        template
        for template in document["paths"]
        if re.fullmatch(".+".join(map(re.escape, re.split(r"\{\w+\}", template))), path)
    ]
    best = max(fitting, key=lambda template: len(re.sub(r"\{\w+\}", "", template)), default=None)
    return [method.upper() for method in document["paths"].get(best, ())]
