"""Request and response bodies of `:predict` in the V1 protocol of TensorFlow Serving and KServe."""

from typing import Any

from service.api.bodies.classify import ClassifyRequest, labels_to_json
from service.api.bodies.fill_request import FillMaskRequest
from service.api.bodies.fill_response import response_parts
from service.api.bodies.request_body import ValidationContext
from service.api.bodies.strict_json import read_json
from service.api.bodies.values import describe
from service.bundles.description import Task
from service.errors import InvalidRequestError, quote
from service.tasks.classification import ClassificationResult
from service.tasks.options import Limits
from service.tasks.results import FillResult

_FIELDS = ("instances", "parameters", "on_error")


def request_schema(body: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a request without references and with this server's limits.

    Args:
        body: schema of a request for the same task in the service's own format.
    """
    properties = dict(body["properties"])
    [*_, texts] = properties.pop("inputs")["anyOf"]
    [example, *_] = body["examples"]
    return body | {
        "title": "PredictRequest",
        "required": ["instances"],
        "examples": [{"instances": [example["inputs"]]}],
        "properties": {"instances": texts, **properties},
    }


def parse_request(
    body: bytes, content_type: str | None, limits: Limits, task: Task
) -> FillMaskRequest | ClassifyRequest:
    """Parse and check a request such as `{"instances": ["a [MASK]"], "parameters": {"top_k": 3}}`.

    Args:
        body: bytes of a JSON object.
        content_type: value of the header Content-Type.
        task: task of the model. The task determines the allowed parameters.

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
        raise InvalidRequestError(
            f"instances must be a list of texts or pairs (got {describe(texts)})."
        )
    context = ValidationContext(limits, texts="instances")
    others = {name: value.get(name) for name in ("parameters", "on_error")}
    request_type = FillMaskRequest if task == "fill-mask" else ClassifyRequest
    return request_type.check({"inputs": texts, **others}, context)


def response_json(result: FillResult | ClassificationResult) -> bytes:
    """Return the response body.

    The predictions are the response body of /fill-mask or /classify for a list of texts.
    """
    if isinstance(result, FillResult):
        parts = response_parts(result, single=False)
    else:
        parts = [labels_to_json(result.labels, single=False)]
    return b"".join([b'{"predictions":', *parts, b"}"])
