"""What the OpenAPI document says of bodies that FastAPI does not read itself."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from service.http.middleware.deadline import MAX_TIMEOUT_MS

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
_ERRORS = {
    "4XX": {
        "description": "The request cannot be answered; the error says why.",
        "content": _ERROR,
    },
    "5XX": {"description": "The service cannot answer; the error says why.", "content": _ERROR},
}

# The rules that requests for fills and scores have beyond their schemas. They need the model's
# tokenizer, or compare one part of a request with another.
BEYOND_THE_SCHEMA = """

- A text to fill has at least one mask of the model (`mask_token` of GET /info); a text to score has
  none. No text has another special token, each has something that the model has tokens for.
- A request keeps to the `limits` of GET /info, in tokens, masks and passes. It has at most 65,536
  JSON values and 262,144 bytes of targets.
- Each target has a spelling in the model's vocabulary.
- A list of parameters goes with a list of as many texts.
- `targets`, `granularity` "word" and `strategy` "joint" exclude each other; masks that are filled
  jointly lie within what the model reads at once.
- Of a tensor, the shape is that of its elements. One tensor holds texts, another may be "targets".
"""


def json_request_body(schema: dict[str, Any]) -> dict[str, Any]:
    """An operation's request body: JSON of a schema, in one piece."""
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def inline_refs(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of pydantic's, with its definitions in the places that refer to them."""
    definitions = schema.get("$defs", {})

    def resolved(value: Any) -> Any:
        if isinstance(value, list):
            return [resolved(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return resolved(definitions[value["$ref"].removeprefix("#/$defs/")])
        return {key: resolved(one) for key, one in value.items() if key != "$defs"}

    whole: dict[str, Any] = resolved(schema)
    return whole


def with_common_parts(
    document: dict[str, Any], allowed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The document with what all operations have: a timeout, and errors.

    Args:
        document: of FastAPI.
        allowed: for some parameters of paths their values.
    """
    header = {
        "name": "X-Request-Timeout-Ms",
        "in": "header",
        "required": False,
        "description": "Milliseconds that the request has; above them the answer is 504.",
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
    """The methods of a path: those of the template that has the most of it in so many words."""
    fitting = [
        template
        for template in document["paths"]
        if re.fullmatch(".+".join(map(re.escape, re.split(r"\{\w+\}", template))), path)
    ]
    best = max(fitting, key=lambda template: len(re.sub(r"\{\w+\}", "", template)), default=None)
    return [method.upper() for method in document["paths"].get(best, ())]
