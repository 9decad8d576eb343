"""Parts of the OpenAPI document that FastAPI does not generate."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from service.http.middleware.deadline import MAX_TIMEOUT_MS

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
_ERRORS = {
    "4XX": {
        "description": "The request is invalid. The error states the reason.",
        "content": _ERROR,
    },
    "5XX": {
        "description": "The service cannot respond. The error states the reason.",
        "content": _ERROR,
    },
}

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
"""


def json_request_body(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI request body for a JSON schema without references."""
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def with_common_parts(
    document: dict[str, Any], allowed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Add the timeout header, the errors of GET requests and the allowed values of parameters.

    Args:
        document: FastAPI's OpenAPI document.
        allowed: allowed values of path parameters, by parameter name.
    """
    header = {
        "name": "X-Request-Timeout-Ms",
        "in": "header",
        "required": False,
        "description": "Time limit of the request in milliseconds. A late response has status 504.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS},
    }
    for operations in document["paths"].values():
        for operation in operations.values():
            own = operation.get("parameters", [])
            for parameter in own:
                if values := allowed.get(parameter["name"]):
                    parameter["schema"]["enum"] = list(values)
            operation["parameters"] = [*own, header]
        if "get" in operations:
            operations["get"]["responses"] = _ERRORS | operations["get"]["responses"]
    return document


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
