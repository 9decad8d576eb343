"""What all request bodies have in common: texts, limits, and errors in our own words."""

import json
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from service.api.strict_json import read_json
from service.errors import MAX_QUOTED_CHARS, InvalidRequestError, quote
from service.tasks.options import Limits

OnError = Literal["error", "report"]
_ON_ERROR: tuple[str, ...] = get_args(OnError)
SENTENCE = "sentence"  # type of the errors whose text is ours


class ErrorResponse(BaseModel):
    """Why there is no answer."""

    error: str = Field(description="one sentence: what, where, what is allowed")


class ValidationContext(NamedTuple):
    """What a request is checked against.

    Attributes:
        limits: of this server.
        texts: what the wire format calls the texts, for errors.
        parameters: the same of the parameters.
        targets: of the targets, where they are no parameter.
    """

    limits: Limits
    texts: str = "inputs"
    parameters: str = "parameters"
    targets: str | None = None


class TextsRequest(BaseModel):
    """A request about one text or several.

    Attributes:
        parameters_model: the type of its parameters.
        inputs: the texts.
        parameters: for all of them, or a list of as many.
        on_error: what a text does that cannot be answered: it fails the request, or is reported.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    parameters_model: ClassVar[type[BaseModel]]

    inputs: str | list[str]
    parameters: Any = None
    on_error: OnError | None = Field(
        default=None,
        description="error (the default): a text that cannot be answered fails the request; "
        "report: it is answered with its error, the others as ever.",
    )

    @field_validator("on_error", mode="before")
    @classmethod
    def _check_on_error(cls, value: object) -> object:
        if value is None or value in _ON_ERROR:
            return value
        raise client_error(f"on_error must be {' or '.join(_ON_ERROR)}, not {describe(value)}.")

    @field_validator("inputs", mode="before")
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        limits, name, *_ = validation_context(info)
        if not isinstance(value, str | list):
            raise client_error(f"{name} must be a text or a list of texts.")
        if not value:
            raise client_error(f"{name} is empty; it must be a text or a list of texts.")
        if isinstance(value, str):
            return value
        if len(value) > limits.max_texts:
            raise client_error(
                f"{name} holds {len(value)} texts; at most {limits.max_texts} are allowed."
            )
        for index, text in enumerate(value):
            if not isinstance(text, str):
                raise client_error(f"{name}[{index}] must be a text.")
        return value

    @model_validator(mode="after")
    def _check_as_many(self, info: ValidationInfo) -> Self:
        if isinstance(self.parameters, list):
            name = validation_context(info).texts
            if self.single:
                raise client_error(f"parameters is a list, and {name} is one text.")
            if len(self.parameters) != len(self.inputs):
                raise client_error(
                    f"parameters holds {len(self.parameters)} objects, and {name} "
                    f"{len(self.inputs)} texts; a list must have one for each."
                )
        return self

    @property
    def texts(self) -> list[str]:
        """The inputs, as a list even if there is only one."""
        return [self.inputs] if isinstance(self.inputs, str) else self.inputs

    @property
    def single(self) -> bool:
        """Whether the inputs are one text and no list."""
        return isinstance(self.inputs, str)

    @property
    def report(self) -> bool:
        """Whether what is wrong with a text is to be reported."""
        return self.on_error == "report"

    @classmethod
    def read(cls, body: bytes, content_type: str | None, limits: Limits) -> Self:
        """Parse and check a request.

        Raises:
            FillMaskError: one sentence about the first thing that is wrong.
        """
        return cls.check(read_json(body, content_type), ValidationContext(limits))

    @classmethod
    def check(cls, value: object, reading: ValidationContext) -> Self:
        """Check a request that has been parsed.

        Raises:
            InvalidRequestError: one sentence about the first thing that is wrong.
        """
        _refuse_more_fields(value, "the body", cls)
        if isinstance(value, dict) and value.get("parameters") is not None:
            value = value | {"parameters": cls._check_parameters(value["parameters"], reading)}
        try:
            return cls.model_validate(value, context=reading)
        except ValidationError as error:
            raise InvalidRequestError(cls._sentence(error.errors()[0])) from None

    @classmethod
    def _check_parameters(
        cls, value: object, reading: ValidationContext
    ) -> BaseModel | list[BaseModel]:
        """Those of all texts, or of each; a list is checked before it is known to be as long."""
        if isinstance(value, list):
            each = []
            for index, one in enumerate(value[: reading.limits.max_texts + 1]):
                named = reading._replace(parameters=f"{reading.parameters}[{index}]")
                each.append(cls._check_one({} if one is None else one, named))
            return each
        return cls._check_one(value, reading)

    @classmethod
    def _check_one(cls, value: object, reading: ValidationContext) -> BaseModel:
        _refuse_more_fields(value, reading.parameters, cls.parameters_model)
        try:
            return cls.parameters_model.model_validate(value, context=reading)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "extra_forbidden":
                name = str(first["loc"][-1])
                sentence = _unknown(name, reading.parameters, cls.parameters_model)
            elif first["type"] == SENTENCE:
                sentence = first["msg"]
            else:
                sentence = f"{reading.parameters} must be a JSON object."
            raise InvalidRequestError(sentence) from None

    @classmethod
    def schema_with_limits(cls, max_texts: int) -> dict[str, Any]:
        """The JSON schema, in one piece and with this server's limits."""
        schema = cls.model_json_schema()
        [parameters] = schema.pop("$defs").values()
        as_many = {"minItems": 1, "maxItems": max_texts}
        none = {"type": "null"}
        each = {"type": "array", "items": {"anyOf": [parameters, none]}, **as_many}
        schema["properties"]["parameters"] = {"anyOf": [parameters, each, none]}
        text, texts = schema["properties"]["inputs"]["anyOf"]
        text["minLength"] = 1
        texts |= as_many
        return schema

    @classmethod
    def _sentence(cls, error: ErrorDetails) -> str:
        """Our words for the errors that pydantic finds itself."""
        if error["type"] == SENTENCE:
            return error["msg"]
        if error["type"] == "extra_forbidden":
            return _unknown(str(error["loc"][-1]), "the body", cls)
        if error["type"] == "missing":
            return "inputs is missing; it must be a text or a list of texts."
        return "The body must be a JSON object."


def _refuse_more_fields(value: object, where: str, model: type[BaseModel]) -> None:
    """Reject an object of more fields than there are at once: pydantic makes an error for each."""
    if isinstance(value, dict) and len(value) > len(model.model_fields):
        unknown = next(name for name in value if name not in model.model_fields)
        raise InvalidRequestError(_unknown(unknown, where, model))


def _unknown(name: str, where: str, model: type[BaseModel]) -> str:
    *others, last = model.model_fields
    allowed = f"{', '.join(others)} and {last}" if others else last
    verb = "are" if others else "is"
    return f"Unknown field {quote(name)} in {where}; allowed {verb} {allowed}."


def validation_context(info: ValidationInfo) -> ValidationContext:
    """What `check` was given."""
    assert isinstance(info.context, ValidationContext)  # noqa: S101 - `check` is the only way in
    return info.context


def client_error(sentence: str) -> PydanticCustomError:
    """To be raised by a validator whose sentence is for the caller."""
    return PydanticCustomError(SENTENCE, "{sentence}", {"sentence": sentence})


def integer_of(value: object) -> int | None:
    """A JSON value as an integer, which 5.0 is as well as 5; others give None."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    # type(), not isinstance(): true is not a number
    return value if type(value) is int else None


def describe(value: object) -> str:
    """A JSON value, short enough for a sentence; one that may be nested only by its kind."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value, ensure_ascii=False)[:MAX_QUOTED_CHARS]
