"""The base class of request bodies, which checks limits and creates error messages."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from fillmask.api.bodies.json_body import read_json
from fillmask.errors import InvalidRequestError
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import PAIR, InputText, Pair, read_inputs
from fillmask.parameters.validation import (
    OnError,
    TaskParameters,
    ValidationContext,
    check_on_error,
    check_same_length,
    reject_extra_fields,
    unknown_field,
    validation_context,
)
from fillmask.parameters.values import CLIENT_ERROR, describe


class ErrorResponse(BaseModel):
    """The body of an error response."""

    error: str = Field(description="Description of the problem and of its solution.")


# the types of texts in JSON schemas
_Text = Annotated[str, Field(min_length=1)]
_Texts = Annotated[list[str | Pair], Field(min_length=1)]


class JsonRequest(BaseModel):
    """Base class of requests whose first error becomes the client's message."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def read(cls, body: bytes, content_type: str | None, limits: Limits) -> Self:
        """Parse and check a request.

        Raises:
            FillMaskError: the request is invalid. The message describes the first error.
        """
        return cls.check(read_json(body, content_type), ValidationContext(limits))

    @classmethod
    def check(cls, value: object, context: ValidationContext) -> Self:
        """Check a parsed request.

        Raises:
            InvalidRequestError: the request is invalid. The message describes the first error.
        """
        reject_extra_fields(value, "the body", cls)
        try:
            return cls.model_validate(value, context=context)
        except ValidationError as error:
            message = cls._message(error.errors()[0], context)
            raise InvalidRequestError(message) from None

    @classmethod
    def _message(cls, error: ErrorDetails, context: ValidationContext) -> str:  # noqa: ARG003 - for subclasses
        """Return the error message for the client."""
        if error["type"] == CLIENT_ERROR:
            return error["msg"]
        if error["type"] == "extra_forbidden":
            return unknown_field(str(error["loc"][-1]), "the body", cls)
        if error["type"] == "missing":
            return f"{error['loc'][-1]} is missing."
        if error["loc"]:  # a field of `only`
            name = str(error["loc"][0])
            allowed, _, reason = (cls.model_fields[name].description or "").partition("; ")
            given = describe(error["input"])
            return f"{name} must be {allowed.removeprefix('Only ')} (got {given}); {reason}"
        return f"The body must be a JSON object (got {describe(error['input'])})."


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
        """The inputs as a list, even for a single text."""
        return self.inputs if isinstance(self.inputs, list) else [self.inputs]

    @property
    def single(self) -> bool:
        """True if the inputs are one text instead of a list."""
        return not isinstance(self.inputs, list)


class TextsRequest(InputsRequest):
    """Base class of requests with one or more texts.

    Attributes:
        parameters: one object for all texts, or a list with one object per text.
        on_error: policy for invalid texts. None has the same meaning as "error".
    """

    parameters_model: ClassVar[type[TaskParameters]]
    inputs_form: ClassVar[str] = f"a text, {PAIR} or a list of these"

    parameters: Any = None
    on_error: Annotated[OnError | None, BeforeValidator(check_on_error)] = Field(
        default=None,
        description="With error (the default), an invalid text fails the request. With report, the "
        "response contains an error in place of the text's results.",
    )

    # after a plain validator, pydantic does not check each text again
    @field_validator("inputs", mode="plain", json_schema_input_type=_Text | Pair | _Texts)
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        limits, name, *_ = validation_context(info)
        return read_inputs(value, name, limits.max_texts)

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
        """True if the response contains an invalid text's error in place of the text's results."""
        return self.on_error == "report"

    @classmethod
    def check(cls, value: object, context: ValidationContext) -> Self:
        """See `JsonRequest`."""
        if isinstance(value, dict) and value.get("parameters") is not None:
            reject_extra_fields(value, "the body", cls)
            value = value | {
                "parameters": cls.parameters_model.read_each(value["parameters"], context)
            }
        return super().check(value, context)

    @classmethod
    def _message(cls, error: ErrorDetails, context: ValidationContext) -> str:
        """See `JsonRequest`."""
        if error["type"] == "missing":
            return f"{context.texts} is missing; it must be {cls.inputs_form}."
        return super()._message(error, context)
