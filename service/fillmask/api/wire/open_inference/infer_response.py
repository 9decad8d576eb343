"""Response bodies of the Open Inference Protocol, version 2.

Each tensor for fills has one row per mask, in the order of the texts. With joint filling and for
labels, each tensor has one row per text.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, Field
from pydantic_core import to_json

from fillmask.api.operations import MODEL_VERSION
from fillmask.api.wire.open_inference.infer_request import InferRequest
from fillmask.api.wire.open_inference.tensors import OUTPUTS, WireTensor
from fillmask.arrays import check_finite
from fillmask.tasks.classify.results import LabelScore
from fillmask.tasks.fill_mask.results import NO_SINGLE_TOKEN, Fill, TextFills
from fillmask.tasks.result import never_null
from fillmask.tasks.task import FILL_MASK

# padding for masks with fewer fills than other masks
_PADDING = Fill(score=0.0, token=NO_SINGLE_TOKEN, token_str="", sequence="")


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
    tensors = (fill_tensors if request.body.task is FILL_MASK else label_tensors)(results)
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


def fill_tensors(fills: Sequence[TextFills]) -> Iterator[WireTensor]:
    masks = [(index, mask) for index, text in enumerate(fills) for mask in text.masks]
    width = max(len(mask) for _, mask in masks)  # with whole words, some masks may have fewer fills
    padded = [fill for _, mask in masks for fill in (*mask, *[_PADDING] * (width - len(mask)))]
    check_finite([fill.score for fill in padded])
    by_mask, by_fill = (len(masks),), (len(masks), width)
    for name, (datatype, axes) in OUTPUTS["fill-mask"].items():
        if axes == 1:
            yield WireTensor(name, datatype, by_mask, [index for index, _ in masks])
        else:
            yield WireTensor(name, datatype, by_fill, [getattr(fill, name) for fill in padded])


def label_tensors(labels: Sequence[Sequence[LabelScore]]) -> Iterator[WireTensor]:
    shape = (len(labels), len(labels[0]))
    for name, (datatype, _) in OUTPUTS["text-classification"].items():
        yield WireTensor(
            name, datatype, shape, [getattr(one, name) for row in labels for one in row]
        )
