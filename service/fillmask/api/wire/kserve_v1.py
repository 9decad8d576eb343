"""Request and response bodies of `:predict` in the V1 protocol of TensorFlow Serving and KServe."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from fillmask.api.json_body import read_json
from fillmask.api.request_body import ErrorResponse, TextsRequest
from fillmask.api.wire.classify import ClassifyResponse, TextsToClassify
from fillmask.api.wire.fill_request import TextsToFill
from fillmask.api.wire.fill_response import MaskFills
from fillmask.bundles.description import Task
from fillmask.errors import InvalidRequestError
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText, Pair, read_inputs
from fillmask.parameters.validation import (
    BODY,
    ValidationContext,
    described,
    validation_context,
)
from fillmask.parameters.values import describe
from fillmask.tasks.classify.results import ClassificationResult, labels_to_json
from fillmask.tasks.fill_mask.results import FillResult, response_parts

_INSTANCES = "instances"

_FORM = "a list of texts or pairs"


class _Instances(TextsRequest):
    missing_cure = f"; it must be {_FORM}"

    inputs: list[InputText] = Field(alias="instances")

    @field_validator(
        "inputs",
        mode="plain",
        json_schema_input_type=Annotated[list[str | Pair], Field(min_length=1)],
    )
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, list):
            raise InvalidRequestError(f"{_INSTANCES} must be {_FORM} (got {describe(value)}).")
        return read_inputs(value, _INSTANCES, validation_context(info).limits.max_texts)


class PredictFillMaskRequest(_Instances, TextsToFill):
    """A request to fill the masks of instances."""

    model_config = ConfigDict(
        json_schema_extra=described({_INSTANCES: ["Paris is the [MASK] of France."]})
    )


class PredictClassifyRequest(_Instances, TextsToClassify):
    """A request to classify instances."""

    model_config = ConfigDict(json_schema_extra=described({_INSTANCES: ["I loved this film."]}))


class PredictFillMaskResponse(BaseModel):
    """The fills of each instance, as in a response of /fill-mask."""

    predictions: list[MaskFills | list[MaskFills] | ErrorResponse]


class PredictClassifyResponse(BaseModel):
    """The labels of each instance, as in a response of /classify."""

    predictions: ClassifyResponse


def parse_request(
    body: bytes, content_type: str | None, limits: Limits, task: Task
) -> PredictFillMaskRequest | PredictClassifyRequest:
    """Parse and check a request such as `{"instances": ["a [MASK]"], "parameters": {"top_k": 3}}`.

    The model's task determines the allowed parameters.

    Raises:
        FillMaskError: the request is invalid.
    """
    value, context = read_json(body, content_type), ValidationContext(limits, _INSTANCES, BODY)
    if task == "fill-mask":
        return PredictFillMaskRequest.check(value, context)
    return PredictClassifyRequest.check(value, context)


def response_json(result: FillResult | ClassificationResult) -> bytes:
    if isinstance(result, FillResult):
        parts = response_parts(result, single=False)
    else:
        parts = [labels_to_json(result.labels, single=False)]
    return b"".join([b'{"predictions":', *parts, b"}"])
