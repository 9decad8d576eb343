"""The request bodies of the Open Inference Protocol for each task, as types for OpenAPI.

`infer_request` reads both with one type, because a parameter selects the task.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from fillmask.api.wire.open_inference.tensors import MAX_AXES
from fillmask.parameters.validation import described
from fillmask.tasks.classify.parameters import ClassifyParameters
from fillmask.tasks.fill_mask.parameters import FillMaskParameters


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra=described())


class InputTensorParameters(_Part):
    """Parameters of an input tensor."""

    binary_data_size: int | None = Field(
        default=None, ge=4, description="Bytes of the tensor after the JSON, 4 more for each text."
    )


class InputTensor(_Part):
    """A tensor of texts."""

    name: str
    shape: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, max_length=MAX_AXES)
    datatype: Annotated[str, WithJsonSchema({"type": "string", "enum": ["BYTES"]})]
    parameters: InputTensorParameters = Field(default_factory=InputTensorParameters)
    data: list[str | Annotated[list[str], Field(min_length=1)]] | None = Field(
        default=None, min_length=1
    )


class RequestedOutputParameters(_Part):
    """Parameters of an output tensor."""

    binary_data: bool = Field(default_factory=bool)


class _InferRequest(_Part):
    id: str | None = None
    model_name: str | None = Field(default=None, description="Name of the model in the path.")


class InferFillMaskParameters(FillMaskParameters):
    """Parameters of a request to fill masks."""

    task: Literal["fill-mask"] | None = None
    binary_data_output: bool = Field(default_factory=bool)


class InferFillMaskOutput(_Part):
    """An output tensor of a request to fill masks."""

    name: Literal["text_index", "token", "token_str", "score", "sequence"]
    parameters: RequestedOutputParameters = Field(default_factory=RequestedOutputParameters)


def _example(text: str) -> Any:
    return {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": [text]}]}


class InferFillMaskRequest(_InferRequest):
    """A request to fill the masks of a tensor of texts."""

    model_config = ConfigDict(
        json_schema_extra=described(_example("Paris is the [MASK] of France."))
    )

    parameters: InferFillMaskParameters = Field(default_factory=InferFillMaskParameters)
    inputs: list[InputTensor] = Field(min_length=1, max_length=3)
    outputs: list[InferFillMaskOutput] | None = None


class InferClassifyParameters(ClassifyParameters):
    """Parameters of a request to classify texts."""

    task: Literal["text-classification"] | None = None
    binary_data_output: bool = Field(default_factory=bool)


class InferClassifyOutput(_Part):
    """An output tensor of a request to classify texts."""

    name: Literal["label", "score"]
    parameters: RequestedOutputParameters = Field(default_factory=RequestedOutputParameters)


class InferClassifyRequest(_InferRequest):
    """A request to classify a tensor of texts."""

    model_config = ConfigDict(
        json_schema_extra=described(
            _example("I loved this film.") | {"parameters": {"task": "text-classification"}}
        )
    )

    parameters: InferClassifyParameters = Field(default_factory=InferClassifyParameters)
    inputs: list[InputTensor] = Field(min_length=1, max_length=2)
    outputs: list[InferClassifyOutput] | None = None
