"""The request bodies of the Open Inference Protocol for each task, as types for OpenAPI.

`infer_request` reads all with one type, because a parameter selects the task.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model

from fillmask.api.request_body import title_of
from fillmask.api.wire.open_inference.tasks import PROTOCOL_TASKS, ProtocolTask
from fillmask.api.wire.open_inference.tensors import MAX_AXES
from fillmask.parameters.validation import described


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


def _request_of(protocol: ProtocolTask) -> type[BaseModel]:
    """Return the type of requests for a task."""
    task, work = protocol.task, protocol.work
    name, of_bundle = f"Infer{title_of(task)}", task.of_bundle
    its_name: Any = Literal[of_bundle]
    its_outputs: Any = Literal[tuple(protocol.outputs)]
    parameters: Any = create_model(
        f"{name}Parameters",
        __base__=task.parameters,
        __doc__=f"Parameters of a request to {work}.",
        task=(its_name | None, None),
        binary_data_output=(bool, Field(default_factory=bool)),
    )
    output: Any = create_model(
        f"{name}Output",
        __base__=_Part,
        __doc__=f"An output tensor of a request to {work}.",
        name=(its_outputs, ...),
        parameters=(RequestedOutputParameters, Field(default_factory=RequestedOutputParameters)),
    )
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [protocol.text]}
    example: Any = {"inputs": [tensor], "parameters": {"task": of_bundle}}
    tensors = 3 if "targets" in task.parameters.model_fields else 2
    made: type[BaseModel] = create_model(
        f"{name}Request",
        __base__=_InferRequest,
        __doc__=f"A request to {work}.",
        __cls_kwargs__={"json_schema_extra": described(example)},
        parameters=(parameters, Field(default_factory=parameters)),
        inputs=(list[InputTensor], Field(min_length=1, max_length=tensors)),
        outputs=(list[output] | None, None),
    )
    return made


REQUESTS = [_request_of(one) for one in PROTOCOL_TASKS.values()]
