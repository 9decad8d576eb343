"""The JSON part of a request of the Open Inference Protocol, with its tensors and parameters."""

from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from fillmask.api.json_body import read_json
from fillmask.errors import MAX_QUOTED_CHARS, InvalidRequestError, escape_unprintable, quote
from fillmask.parameters.types import INTEGER
from fillmask.parameters.values import describe

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
