"""Request and response bodies of the Open Inference Protocol, version 2.

One BYTES tensor of a request contains the texts. A second BYTES tensor named "targets" is optional.
Each tensor of the response has one row per mask, in the order of the texts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from pydantic_core import to_json

from service.api.bodies.fill_request import FillMaskRequest
from service.api.bodies.request_body import ValidationContext
from service.api.bodies.strict_json import read_json
from service.api.bodies.values import CLIENT_ERROR, client_error, describe, integer_of
from service.api.protocols.tensors import WireTensor, check_shape, read_texts, split_body
from service.errors import MAX_QUOTED_CHARS, InvalidRequestError, quote
from service.tasks.options import Limits
from service.tasks.results import NO_SINGLE_TOKEN, Fill

MODEL_VERSION = "1"
PLATFORM = "onnxruntime_onnx"
TEXT, TARGETS = "text", "targets"
# name of an output tensor -> (datatype, number of axes)
OUTPUTS = {
    "text_index": ("INT64", 1),
    "token": ("INT64", 2),
    "token_str": ("BYTES", 2),
    "score": ("FP32", 2),
    "sequence": ("BYTES", 2),
}
_BINARY_SIZE, _BINARY, _BINARY_BY_DEFAULT = "binary_data_size", "binary_data", "binary_data_output"

Parameters = dict[str, JsonValue]

# padding for masks with fewer fills than other masks
_PADDING = Fill(score=0.0, token=NO_SINGLE_TOKEN, token_str="", sequence="")


def _integer(value: object) -> object:
    number = integer_of(value)
    return value if number is None else number


_Integer = Annotated[int, BeforeValidator(_integer)]


# fail_fast stops at the first invalid item, because thousands of errors take too much memory
class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: object) -> object:
        """Reject the first unknown field, because pydantic creates one error per field."""
        if isinstance(value, dict) and len(value) > len(cls.model_fields):
            name = next(name for name in value if name not in cls.model_fields)
            raise client_error(_unknown_field(name))
        return value


class InputTensor(_Part):
    """A tensor of a request."""

    name: str
    shape: list[_Integer] = Field(fail_fast=True)
    datatype: str
    parameters: Parameters = Field(default_factory=dict)
    data: list[JsonValue] | None = Field(default=None, fail_fast=True)


class RequestedOutput(_Part):
    """An output that a request selects."""

    name: str
    parameters: Parameters = Field(default_factory=dict)


class InferBody(_Part):
    """The JSON part of a request."""

    id: str | None = None
    parameters: Parameters = Field(default_factory=dict)
    inputs: list[InputTensor] = Field(fail_fast=True)
    outputs: list[RequestedOutput] | None = Field(default=None, fail_fast=True)


@dataclass(frozen=True, slots=True)
class InferRequest:
    """A parsed request.

    Attributes:
        id: id that the client gave to the request, which the response repeats.
        fill: texts and parameters.
        label: name of the tensor with the texts, for error messages.
        outputs: selected outputs by name, with True for the binary form and False for JSON.
    """

    id: str | None
    fill: FillMaskRequest
    label: str
    outputs: dict[str, bool]

    @classmethod
    def read(cls, body: bytes, json_bytes: str | None, limits: Limits) -> "InferRequest":
        """Parse and check a request.

        `json_bytes` is the value of the header Inference-Header-Content-Length.

        Raises:
            FillMaskError: the request is invalid. The message describes the first error.
        """
        head, tail = split_body(body, json_bytes)
        try:
            request = InferBody.model_validate(read_json(head, "application/json"))
        except ValidationError as error:
            raise InvalidRequestError(_message(error)) from None
        tensors = dict(_texts(request.inputs, tail))
        targets = tensors.pop(TARGETS, None)
        if len(tensors) != 1:
            raise InvalidRequestError(
                f"inputs must have one tensor of texts and optionally one named {quote(TARGETS)} "
                f"(got {len(tensors)} of texts)."
            )
        [(name, texts)] = tensors.items()
        parameters = dict(request.parameters)
        binary = _flag(parameters, _BINARY_BY_DEFAULT, "parameters", default=False)
        if targets is not None:
            parameters[TARGETS] = list(targets)
        context = ValidationContext(limits, texts=name, targets=TARGETS)
        fill = FillMaskRequest.check({"inputs": texts, "parameters": parameters}, context)
        if not request.outputs:
            return cls(request.id, fill, name, dict.fromkeys(OUTPUTS, binary))
        return cls(request.id, fill, name, dict(_selected(request.outputs, default=binary)))


def response_body(
    model: str, request: InferRequest, fills: Sequence[Sequence[Sequence[Fill]]]
) -> tuple[bytes, int | None]:
    """Return the response body and the length of its JSON in bytes.

    The length is None if no binary tensor follows the JSON.
    """
    tensors = {tensor.name: tensor for tensor in _tensors(fills)}
    outputs, contents = [], []
    for name, binary in request.outputs.items():
        if binary:
            head, content = tensors[name].to_bytes()
            contents.append(content)
        else:
            head = tensors[name].to_json()
        outputs.append(head)
    optional_id = {"id": request.id} if request.id is not None else {}
    body = {"model_name": model, "model_version": MODEL_VERSION, **optional_id, "outputs": outputs}
    head_bytes = to_json(body)
    return b"".join([head_bytes, *contents]), len(head_bytes) if contents else None


def metadata(model: str) -> dict[str, Any]:
    """Return the metadata of a model in the format of the protocol."""
    text = {"datatype": "BYTES", "shape": [-1]}
    return {
        "name": model,
        "versions": [MODEL_VERSION],
        "platform": PLATFORM,
        "inputs": [{"name": TEXT, **text}, {"name": TARGETS, **text}],
        "outputs": [
            {"name": name, "datatype": datatype, "shape": [-1] * axes}
            for name, (datatype, axes) in OUTPUTS.items()
        ],
    }


def _tensors(fills: Sequence[Sequence[Sequence[Fill]]]) -> Iterator[WireTensor]:
    masks = [(index, mask) for index, text in enumerate(fills) for mask in text]
    width = max(len(mask) for _, mask in masks)  # some masks may have fewer words
    padded = [fill for _, mask in masks for fill in (*mask, *[_PADDING] * (width - len(mask)))]
    if not all(math.isfinite(fill.score) for fill in padded):
        raise ValueError("the model returned NaN or infinity; export its bundle again")
    by_mask, by_fill = (len(masks),), (len(masks), width)
    for name, (datatype, axes) in OUTPUTS.items():
        if axes == 1:
            yield WireTensor(name, datatype, by_mask, [index for index, _ in masks])
        else:
            yield WireTensor(name, datatype, by_fill, [getattr(fill, name) for fill in padded])


def _texts(inputs: Sequence[InputTensor], tail: bytes) -> Iterator[tuple[str, list[str]]]:
    seen = set()
    for tensor in inputs:
        label = f"The input {quote(tensor.name)}"
        if tensor.name in seen:
            raise InvalidRequestError(f"{label} is a duplicate; send it once.")
        seen.add(tensor.name)
        if tensor.datatype != "BYTES":
            raise InvalidRequestError(
                f"{label} must have the datatype BYTES (got {quote(tensor.datatype)})."
            )
        options = dict(tensor.parameters)
        given_size = options.pop(_BINARY_SIZE, None)
        _reject_other(options, f"inputs {quote(tensor.name)}", _BINARY_SIZE)
        if given_size is None:
            texts = list(_flat(tensor))
        else:
            size = integer_of(given_size)
            if size is None or not 0 <= size <= len(tail) or tensor.data is not None:
                got = describe(given_size) + (" and data" if tensor.data is not None else "")
                raise InvalidRequestError(
                    f"{label} must have either data or a {_BINARY_SIZE} from 0 to {len(tail)} "
                    f"(got {got})."
                )
            texts, tail = read_texts(tensor.name, tail[:size]), tail[size:]
        check_shape(tensor.name, tensor.shape, len(texts))
        yield tensor.name, texts
    if tail:
        raise InvalidRequestError(
            f"The last {len(tail)} bytes of the body belong to no input; each binary input needs a "
            f"{_BINARY_SIZE}."
        )


def _flat(tensor: InputTensor) -> Iterator[str]:
    """Yield the texts of a tensor, whose data is a list of texts or of rows of texts."""
    label = f"The input {quote(tensor.name)}"
    if tensor.data is None:
        raise InvalidRequestError(f"{label} has no data; send data or a {_BINARY_SIZE}.")
    for row in tensor.data:
        if row == []:
            raise InvalidRequestError(f"{label} has an empty row in data; remove it.")
        for value in row if isinstance(row, list) else [row]:
            if not isinstance(value, str):
                raise InvalidRequestError(
                    f"{label} must have only texts in data (got {describe(value)})."
                )
            yield value


def _selected(outputs: Sequence[RequestedOutput], *, default: bool) -> Iterator[tuple[str, bool]]:
    for output in outputs:
        if output.name not in OUTPUTS:
            raise InvalidRequestError(
                f"Unknown output {quote(output.name)}; allowed: {', '.join(OUTPUTS)}."
            )
        options = dict(output.parameters)
        label = f"outputs {quote(output.name)}"
        yield output.name, _flag(options, _BINARY, label, default=default)
        _reject_other(options, label, _BINARY)


def _flag(options: Parameters, name: str, label: str, *, default: bool) -> bool:
    value = options.pop(name, default)
    if not isinstance(value, bool):
        raise InvalidRequestError(
            f"{name} in {label} must be true or false (got {describe(value)})."
        )
    return value


def _reject_other(options: Parameters, label: str, allowed: str) -> None:
    for name in options:
        raise InvalidRequestError(
            f"Unknown parameter {quote(name)} in {label}; allowed: {allowed}."
        )


def _message(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    label = ".".join(map(str, first["loc"])) or "The body"
    if len(label) > MAX_QUOTED_CHARS:
        label = f"{label[: MAX_QUOTED_CHARS - 1]}…"
    if first["type"] == CLIENT_ERROR:
        return first["msg"]
    if first["type"] == "missing":
        return f"{label} is missing; add it."
    if first["type"] == "extra_forbidden":
        return _unknown_field(label)
    return f"{label}: {first['msg'][:1].lower()}{first['msg'][1:]}."


def _unknown_field(name: str) -> str:
    return f"Unknown field {quote(name)}; remove it."
