"""The Open Inference Protocol, version 2: bodies in and out. No HTTP.

Texts come as a BYTES tensor, targets as a second one named "targets". The answer's tensors have a
row for each mask, over all texts in order.
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

from service.api.fill_request import FillMaskRequest
from service.api.protocols.tensors import WireTensor, check_shape, read_texts, split_body
from service.api.request_body import SENTENCE, ValidationContext, client_error, integer_of
from service.api.strict_json import read_json
from service.errors import MAX_QUOTED_CHARS, InvalidRequestError, quote
from service.tasks.options import Limits
from service.tasks.results import NO_SINGLE_TOKEN, Fill

MODEL_VERSION = "1"
PLATFORM = "onnxruntime_onnx"
TEXT, TARGETS = "text", "targets"
# name -> (datatype, number of axes)
OUTPUTS = {
    "text_index": ("INT64", 1),
    "token": ("INT64", 2),
    "token_str": ("BYTES", 2),
    "score": ("FP32", 2),
    "sequence": ("BYTES", 2),
}
_BINARY_SIZE, _BINARY, _BINARY_BY_DEFAULT = "binary_data_size", "binary_data", "binary_data_output"

Parameters = dict[str, JsonValue]

# what fills up rows that are shorter than the longest
_NONE = Fill(score=0.0, token=NO_SINGLE_TOKEN, token_str="", sequence="")


def _integer(value: object) -> object:
    number = integer_of(value)
    return value if number is None else number


_Integer = Annotated[int, BeforeValidator(_integer)]


# fail_fast: the first wrong item ends the check; an error for each of thousands would fill memory
class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: object) -> object:
        """Reject unknown fields at the first, not with an error for each."""
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
    """A tensor that is wanted."""

    name: str
    parameters: Parameters = Field(default_factory=dict)


class InferBody(_Part):
    """A request."""

    id: str | None = None
    parameters: Parameters = Field(default_factory=dict)
    inputs: list[InputTensor] = Field(fail_fast=True)
    outputs: list[RequestedOutput] | None = Field(default=None, fail_fast=True)


@dataclass(frozen=True, slots=True)
class InferRequest:
    """A request, read.

    Attributes:
        id: the caller's, to be sent back.
        fill: what to fill.
        called: what the caller calls the texts.
        outputs: the tensors wanted, and of each whether its values come as bytes.
    """

    id: str | None
    fill: FillMaskRequest
    called: str
    outputs: dict[str, bool]

    @classmethod
    def read(cls, body: bytes, json_bytes: str | None, limits: Limits) -> "InferRequest":
        """Parse and check a request.

        Args:
            body: of the request.
            json_bytes: the header Inference-Header-Content-Length, if there is one.
            limits: of this server.

        Raises:
            FillMaskError: one sentence about the first thing that is wrong.
        """
        head, tail = split_body(body, json_bytes)
        try:
            request = InferBody.model_validate(read_json(head, "application/json"))
        except ValidationError as error:
            raise InvalidRequestError(_sentence(error)) from None
        tensors = dict(_texts(request.inputs, tail))
        targets = tensors.pop(TARGETS, None)
        if len(tensors) != 1:
            raise InvalidRequestError(
                f"inputs must hold one tensor of texts and may hold one named {quote(TARGETS)}."
            )
        [(name, texts)] = tensors.items()
        asked = dict(request.parameters)
        by_default = _flag(asked, _BINARY_BY_DEFAULT, "parameters", default=False)
        names = ValidationContext(limits, texts=name, targets=TARGETS)
        fill = FillMaskRequest.check(
            {"inputs": texts, "parameters": asked | _given(targets)}, names
        )
        wanted = request.outputs
        if not wanted:
            return cls(request.id, fill, name, dict.fromkeys(OUTPUTS, by_default))
        return cls(request.id, fill, name, dict(_wanted(wanted, default=by_default)))


def answer(
    model: str, request: InferRequest, fills: Sequence[Sequence[Sequence[Fill]]]
) -> tuple[bytes, int | None]:
    """The body of an answer, and how long its JSON is if bytes lie behind it."""
    tensors = {tensor.name: tensor for tensor in _tensors(fills)}
    described, contents = [], []
    for name, binary in request.outputs.items():
        if binary:
            head, content = tensors[name].to_bytes()
            contents.append(content)
        else:
            head = tensors[name].to_json()
        described.append(head)
    named = {"id": request.id} if request.id is not None else {}
    body = {"model_name": model, "model_version": MODEL_VERSION, **named, "outputs": described}
    head_bytes = to_json(body)
    return b"".join([head_bytes, *contents]), len(head_bytes) if contents else None


def metadata(model: str) -> dict[str, Any]:
    """What the protocol tells of a model."""
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
    width = max(len(mask) for _, mask in masks)  # a search for words may find fewer at some masks
    every = [fill for _, mask in masks for fill in (*mask, *[_NONE] * (width - len(mask)))]
    if not all(math.isfinite(fill.score) for fill in every):
        raise ValueError("the model has answered with what is not a number")
    by_mask, by_fill = (len(masks),), (len(masks), width)
    for name, (datatype, axes) in OUTPUTS.items():
        if axes == 1:
            yield WireTensor(name, datatype, by_mask, [index for index, _ in masks])
        else:
            yield WireTensor(name, datatype, by_fill, [getattr(fill, name) for fill in every])


def _texts(inputs: Sequence[InputTensor], tail: bytes) -> Iterator[tuple[str, list[str]]]:
    """Each input's name and elements."""
    seen = set()
    for tensor in inputs:
        if tensor.name in seen:
            raise InvalidRequestError(f"The input {quote(tensor.name)} is given twice.")
        seen.add(tensor.name)
        if tensor.datatype != "BYTES":
            raise InvalidRequestError(
                f"The input {quote(tensor.name)} must be of the datatype BYTES, not "
                f"{quote(tensor.datatype)}."
            )
        options = dict(tensor.parameters)
        size = options.pop(_BINARY_SIZE, None)
        _refuse_others(options, f"inputs {quote(tensor.name)}", _BINARY_SIZE)
        if size is None:
            texts = list(_flat(tensor))
        else:
            size = integer_of(size)
            if size is None or not 0 <= size <= len(tail) or tensor.data is not None:
                raise InvalidRequestError(
                    f"The input {quote(tensor.name)} must have either data or a {_BINARY_SIZE} "
                    "within the body."
                )
            texts, tail = read_texts(tensor.name, tail[:size]), tail[size:]
        check_shape(tensor.name, tensor.shape, len(texts))
        yield tensor.name, texts
    if tail:
        raise InvalidRequestError(f"{len(tail)} bytes at the end of the body belong to no input.")


def _flat(tensor: InputTensor) -> Iterator[str]:
    """The elements of data, which may be nested as the shape is."""
    if tensor.data is None:
        raise InvalidRequestError(f"The input {quote(tensor.name)} has no data.")
    for row in tensor.data:
        if row == []:
            raise InvalidRequestError(f"The input {quote(tensor.name)} has an empty row in data.")
        for value in row if isinstance(row, list) else [row]:
            if not isinstance(value, str):
                raise InvalidRequestError(
                    f"The input {quote(tensor.name)} must hold texts and nothing else."
                )
            yield value


def _wanted(outputs: Sequence[RequestedOutput], *, default: bool) -> Iterator[tuple[str, bool]]:
    for output in outputs:
        if output.name not in OUTPUTS:
            raise InvalidRequestError(
                f"There is no output {quote(output.name)}; there are {', '.join(OUTPUTS)}."
            )
        options = dict(output.parameters)
        where = f"outputs {quote(output.name)}"
        yield output.name, _flag(options, _BINARY, where, default=default)
        _refuse_others(options, where, _BINARY)


def _flag(options: Parameters, name: str, where: str, *, default: bool) -> bool:
    value = options.pop(name, default)
    if not isinstance(value, bool):
        raise InvalidRequestError(f"{name} in {where} must be true or false.")
    return value


def _refuse_others(options: Parameters, where: str, allowed: str) -> None:
    for name in options:
        raise InvalidRequestError(
            f"Unknown parameter {quote(name)} in {where}; allowed is {allowed}."
        )


def _given(targets: list[str] | None) -> dict[str, JsonValue]:
    return {} if targets is None else {"targets": list(targets)}


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or "The body"
    if len(where) > MAX_QUOTED_CHARS:
        where = f"{where[: MAX_QUOTED_CHARS - 1]}…"
    if first["type"] == SENTENCE:
        return first["msg"]
    if first["type"] == "missing":
        return f"{where} is missing."
    if first["type"] == "extra_forbidden":
        return _unknown_field(where)
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}."


def _unknown_field(name: str) -> str:
    return f"{quote(name)} is a field that the protocol does not have."
