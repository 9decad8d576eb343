"""The base class of request bodies, which checks limits and creates error messages."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field, ValidationInfo, field_validator, model_validator

from fillmask.api.json_body import read_json
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import PAIR, InputText, Pair, read_inputs
from fillmask.parameters.types import OnErrorField
from fillmask.parameters.validation import (
    BODY,
    PARAMETERS,
    ClientObject,
    TaskParameters,
    ValidationContext,
    check_same_length,
    validation_context,
)


class ErrorResponse(BaseModel):
    """The body of an error response."""

    error: str = Field(description="Description of the problem and of its solution.")


# the types of texts in JSON schemas
_Text = Annotated[str, Field(min_length=1)]
_Texts = Annotated[list[str | Pair], Field(min_length=1)]


class JsonRequest(ClientObject):
    """Base class of request bodies."""

    @classmethod
    def read(cls, body: bytes, content_type: str | None, limits: Limits) -> Self:
        """Parse and check a request, or raise the FillMaskError of its first error."""
        return cls.check(read_json(body, content_type), ValidationContext(limits, place=BODY))


def only(allowed: str, reason: str) -> Any:
    """Return the description of a field of another service that must not change the answer.

    The refusal of another value says the same.
    """
    return Field(description=f"Only {allowed}; {reason}.")


class InputsRequest(JsonRequest):
    """Base class of requests with one text or a list of texts."""

    inputs: InputText | list[InputText]

    @property
    def texts(self) -> list[InputText]:
        return self.inputs if isinstance(self.inputs, list) else [self.inputs]

    @property
    def single(self) -> bool:
        return not isinstance(self.inputs, list)


_FORM = f"a text, {PAIR} or a list of these"


class TextsRequest(InputsRequest):
    """Base class of requests with one or more texts."""

    parameters_model: ClassVar[type[TaskParameters]]
    missing_cure = f"; it must be {_FORM}"

    parameters: Any = None
    on_error: OnErrorField = None

    # after a plain validator, pydantic does not check each text again
    @field_validator("inputs", mode="plain", json_schema_input_type=_Text | Pair | _Texts)
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        limits, name, _ = validation_context(info)
        return read_inputs(value, name, limits.max_texts)

    @field_validator("parameters", mode="before")
    @classmethod
    def _check_parameters(cls, value: object, info: ValidationInfo) -> object:
        context = validation_context(info)._replace(place=PARAMETERS)
        return value if value is None else cls.parameters_model.read_each(value, context)

    @model_validator(mode="after")
    def _check_same_length(self, info: ValidationInfo) -> Self:
        check_same_length(self.parameters, self.inputs, validation_context(info))
        return self

    @property
    def options(self) -> Any:
        """Options of each text. A request without parameters has the default options."""
        if isinstance(self.parameters, list):
            return [one.options for one in self.parameters]
        return [(self.parameters or self.parameters_model()).options] * len(self.texts)

    @property
    def report_errors(self) -> bool:
        return self.on_error == "report"
