"""Request and response bodies of `:predict` in the V1 protocol of TensorFlow Serving and KServe."""

from typing import Any

from service.api.bodies.fill_request import FillMaskRequest
from service.api.bodies.fill_response import response_parts
from service.api.bodies.request_body import ValidationContext
from service.api.bodies.strict_json import read_json
from service.api.bodies.values import describe
from service.errors import InvalidRequestError, quote
from service.tasks.options import Limits
from service.tasks.results import FillResult

_FIELDS = ("instances", "parameters", "on_error")


def request_schema(max_texts: int, max_top_k: int) -> dict[str, Any]:
    """Return the JSON schema of a request without references and with this server's limits."""
    schema = FillMaskRequest.schema_with_limits(max_texts, max_top_k)
    properties = schema["properties"]
    texts = properties.pop("inputs")["anyOf"][1]
    return schema | {
        "title": "PredictRequest",
        "required": ["instances"],
        "examples": [{"instances": ["Paris is the [MASK] of France."]}],
        "properties": {"instances": texts, **properties},
    }


def parse_request(body: bytes, content_type: str | None, limits: Limits) -> FillMaskRequest:
    """Parse and check a request such as `{"instances": ["a [MASK]"], "parameters": {"top_k": 3}}`.

    Raises:
        FillMaskError: the request is invalid. The message describes the first error.
    """
    value = read_json(body, content_type)
    if not isinstance(value, dict):
        raise InvalidRequestError(f"The body must be a JSON object (got {describe(value)}).")
    for name in value:
        if name not in _FIELDS:
            raise InvalidRequestError(
                f"Unknown field {quote(name)} in the body; allowed: {', '.join(_FIELDS)}."
            )
    texts = value.get("instances")
    if not isinstance(texts, list):
        raise InvalidRequestError(f"instances must be a list of texts (got {describe(texts)}).")
    context = ValidationContext(limits, texts="instances")
    others = {name: value.get(name) for name in ("parameters", "on_error")}
    return FillMaskRequest.check({"inputs": texts, **others}, context)


def response_json(result: FillResult) -> bytes:
    """Return the response body. Each prediction has Hugging Face's format for a single text."""
    return b"".join([b'{"predictions":', *response_parts(result, single=False), b"}"])
