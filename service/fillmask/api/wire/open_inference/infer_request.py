"""Requests of the Open Inference Protocol, version 2.

One BYTES tensor of a request contains the texts. A BYTES tensor named "text_pair" with the second
text of each pair is optional. A request for fills may also have a BYTES tensor named "targets".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from fillmask.api.request_body import TextsRequest, read_json, request_of
from fillmask.api.wire.open_inference.tasks import PROTOCOL_TASKS
from fillmask.api.wire.open_inference.tensors import (
    TARGETS,
    TEXT_PAIR,
    check_shape,
    label_of,
    read_texts,
    split_body,
)
from fillmask.bundles.description import Task
from fillmask.errors import MAX_QUOTED_CHARS, InvalidRequestError, escape_unprintable, quote
from fillmask.parameters.limits import Limits
from fillmask.parameters.types import INTEGER
from fillmask.parameters.validation import BODY, ValidationContext
from fillmask.parameters.values import describe, integer_of

_TASK = "task"
_TASKS = tuple(PROTOCOL_TASKS)
_BINARY_SIZE, _BINARY, _BINARY_BY_DEFAULT = "binary_data_size", "binary_data", "binary_data_output"


# value that a field must have, by the type of pydantic's error
_KINDS = {
    "string_type": "a text",
    "list_type": "a list",
    "int_type": "a whole number",
    "recursion_depth_exceeded": "a value with fewer levels",
}

Parameters = dict[str, JsonValue]


# fail_fast stops at the first invalid item, because thousands of errors take too much memory
class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > len(cls.model_fields):
            name = next(name for name in value if name not in cls.model_fields)
            raise InvalidRequestError(_unknown_field(name))
        return value


class InputTensor(_Part):
    """A tensor of a request."""

    name: str
    shape: list[Annotated[int, INTEGER]] = Field(fail_fast=True)
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
    model_name: str | None = Field(default=None, description="Name of the model in the path.")
    parameters: Parameters = Field(default_factory=dict)
    inputs: list[InputTensor] = Field(fail_fast=True)
    outputs: list[RequestedOutput] | None = Field(default=None, fail_fast=True)

    @classmethod
    def parse(cls, head: bytes) -> "InferBody":
        """Parse the JSON part, or raise the InvalidRequestError of its first error."""
        try:
            return cls.model_validate(read_json(head, "application/json"))
        except ValidationError as error:
            raise InvalidRequestError(_message(error)) from None


def _message(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))[: MAX_QUOTED_CHARS + 1]
    label = escape_unprintable(place) or "The body"
    if len(label) > MAX_QUOTED_CHARS:
        label = f"{label[: MAX_QUOTED_CHARS - 1]}…"
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    if first["type"] == "missing":
        return f"{label} is missing; add it."
    if first["type"] == "extra_forbidden":
        return _unknown_field(label)
    kind = _KINDS.get(first["type"], "a JSON object")
    return f"{label} must be {kind} (got {describe(first['input'])})."


def _unknown_field(name: str) -> str:
    return f"Unknown field {quote(name)}; remove it."


@dataclass(frozen=True, slots=True)
class InferRequest:
    """A parsed request.

    Attributes:
        label: name of the tensor with the texts, for error messages.
        outputs: outputs of the response by name, with True for the binary form and False for JSON.
    """

    id: str | None
    model_name: str | None
    body: TextsRequest
    label: str
    outputs: dict[str, bool]

    @classmethod
    def read(
        cls, body: bytes, json_bytes: str | None, limits: Limits, default_task: Task
    ) -> "InferRequest":
        """Parse and check a request, or raise the FillMaskError of its first error.

        Args:
            json_bytes: value of the header Inference-Header-Content-Length.
        """
        head, tail = split_body(body, json_bytes)
        request = InferBody.parse(head)
        tensors = dict(_texts(request.inputs, tail))
        parameters = dict(request.parameters)
        task = _task(parameters.pop(_TASK, None), default_task)
        binary = _flag(parameters, _BINARY_BY_DEFAULT, "parameters", default=False)
        seconds = tensors.pop(TEXT_PAIR, None)
        if task == "fill-mask" and TARGETS in tensors:
            if parameters.get(TARGETS) is not None:
                raise InvalidRequestError("targets is a tensor and a parameter; send only one.")
            parameters[TARGETS] = list(tensors.pop(TARGETS))
        if len(tensors) != 1:
            others = [TEXT_PAIR, TARGETS] if task == "fill-mask" else [TEXT_PAIR]
            raise InvalidRequestError(
                "inputs must have one tensor of texts and optionally a tensor "
                f"{' and a tensor '.join(map(quote, others))} (got tensors of texts: "
                f"{len(tensors)})."
            )
        [(name, texts)] = tensors.items()
        inputs = texts if seconds is None else _pairs(name, texts, seconds)
        label = label_of(name)
        context = ValidationContext(limits, label, BODY)
        value = {"inputs": inputs, "parameters": parameters}
        chosen = PROTOCOL_TASKS[task]
        checked = request_of(chosen.task).check(value, context)
        outputs = dict.fromkeys(chosen.outputs, binary)
        if request.outputs:
            outputs = dict(_selected(request.outputs, tuple(outputs), default=binary))
        return cls(request.id, request.model_name, checked, label, outputs)


def _task(value: object, default: Task) -> Task:
    if value is None:
        # a model without a task of the protocol is refused later, for the first of these tasks
        return default if default in _TASKS else _TASKS[0]
    for task in _TASKS:
        if value == task:
            return task
    raise InvalidRequestError(
        f"parameters.{_TASK} must be {' or '.join(_TASKS)} (got {describe(value)})."
    )


def _pairs(name: str, texts: Sequence[str], seconds: Sequence[str]) -> list[dict[str, str]]:
    if len(texts) != len(seconds):
        raise InvalidRequestError(
            f"The input {quote(TEXT_PAIR)} must have one text per text of {quote(name)}, "
            f"{len(texts)} in total (got {len(seconds)})."
        )
    return [{"text": text, TEXT_PAIR: second} for text, second in zip(texts, seconds, strict=True)]


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
            f"The body has bytes after the last binary input (number of bytes: {len(tail)}); set "
            f"the {_BINARY_SIZE} of each binary input."
        )


def _flat(tensor: InputTensor) -> Iterator[str]:
    """Yield the texts of a tensor, whose data is a list of texts or of rows of texts."""
    label = f"The input {quote(tensor.name)}"
    if tensor.data is None:
        raise InvalidRequestError(f"{label} has no data; send data or a {_BINARY_SIZE}.")
    for row in tensor.data:
        if row == []:
            raise InvalidRequestError(f"{label} has an empty row in data; remove the row.")
        for value in row if isinstance(row, list) else [row]:
            if not isinstance(value, str):
                raise InvalidRequestError(
                    f"{label} must have only texts in data (got {describe(value)})."
                )
            yield value


def _selected(
    outputs: Sequence[RequestedOutput], names: Sequence[str], *, default: bool
) -> Iterator[tuple[str, bool]]:
    for output in outputs:
        if output.name not in names:
            raise InvalidRequestError(
                f"Unknown output {quote(output.name)}; allowed: {', '.join(names)}."
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
