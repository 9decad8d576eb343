"""Response bodies of the Open Inference Protocol, version 2."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field
from pydantic_core import to_json

from fillmask.api.operations import MODEL_VERSION
from fillmask.api.wire.open_inference.infer_request import InferRequest
from fillmask.api.wire.open_inference.tasks import PROTOCOL_TASKS
from fillmask.tasks.result import never_null


class OutputTensor(BaseModel):
    """A tensor of a response in JSON."""

    name: str
    datatype: str = Field(description="BYTES, FP32 or INT64.")
    shape: list[int]
    data: list[str | float] = Field(description="Elements in row-major order.")


class InferResponse(BaseModel):
    """A response without binary tensors."""

    model_name: str
    model_version: str
    id: str | None = Field(
        default=None, json_schema_extra=never_null, description="Id of the request, if it has one."
    )
    outputs: list[OutputTensor]


def response_to(
    request: InferRequest, model: str, results: Sequence[Any]
) -> tuple[bytes, int | None]:
    """Return the response body and the length of its JSON in bytes.

    The length is None if no binary tensor follows the JSON.
    """
    tensors = PROTOCOL_TASKS[request.body.task.of_bundle].tensors(results)
    by_name = {tensor.name: tensor for tensor in tensors}
    outputs, contents = [], []
    for name, binary in request.outputs.items():
        if binary:
            head, content = by_name[name].to_bytes()
            contents.append(content)
        else:
            head = by_name[name].to_json()
        outputs.append(head)
    optional_id = {"id": request.id} if request.id is not None else {}
    body = {"model_name": model, "model_version": MODEL_VERSION, **optional_id, "outputs": outputs}
    head_bytes = to_json(body)
    return b"".join([head_bytes, *contents]), len(head_bytes) if contents else None
