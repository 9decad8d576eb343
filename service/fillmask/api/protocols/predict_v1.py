"""Request and response bodies of `:predict` in the V1 protocol of TensorFlow Serving and KServe."""

from typing import Any

from pydantic import BaseModel

from fillmask.api.bodies.classify import ClassifyRequest, ClassifyResponse
from fillmask.api.bodies.fill_request import FillMaskRequest
from fillmask.api.bodies.fill_response import MaskFills
from fillmask.api.bodies.json_body import read_json
from fillmask.api.bodies.json_schema import Components
from fillmask.api.bodies.request_body import ErrorResponse
from fillmask.bundles.description import Task
from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.limits import Limits
from fillmask.parameters.validation import ValidationContext
from fillmask.parameters.values import describe
from fillmask.results.fills import FillResult, response_parts
from fillmask.results.labels import ClassificationResult, labels_to_json

_FIELDS = ("instances", "parameters", "on_error")


class PredictFillMaskResponse(BaseModel):
    """The fills of each instance, as in a response of /fill-mask."""

    predictions: list[MaskFills | list[MaskFills] | ErrorResponse]


class PredictClassifyResponse(BaseModel):
    """The labels of each instance, as in a response of /classify."""

    predictions: ClassifyResponse


def predict_components(name: str, request: dict[str, Any]) -> Components:
    """Return the JSON schema of a request, by its name.

    Args:
        name: name of the task in the name of the schema, such as `FillMask`.
        request: schema of a request for the task in the service's own format.
    """
    properties = dict(request["properties"])
    [*_, texts] = properties.pop("inputs")["anyOf"]
    del properties["options"]
    schema = request | {
        "title": f"Predict{name}Request",
        "required": ["instances"],
        "examples": [{"instances": [example["inputs"]]} for example in request["examples"]],
        "properties": {"instances": texts, **properties},
    }
    return {f"Predict{name}Request": schema}


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
