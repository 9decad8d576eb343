"""Validation of the parameters of a task, wherever they come from.

HTTP, the command and Python validate here, so they refuse the same values in the same words.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    ValidationError,
    ValidationInfo,
)
from typing_extensions import TypeAliasType

from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.limits import Limits
from fillmask.parameters.values import CLIENT_ERROR, client_error, describe, integer_of

OnError = TypeAliasType("OnError", Literal["error", "report"])
_ON_ERROR: tuple[OnError, ...] = get_args(OnError.__value__)
_PARAMETERS = "parameters"


class ValidationContext(NamedTuple):
    """Limits of a request, with the labels of its fields in error messages.

    Attributes:
        texts: label of the texts, such as `instances` in the V1 protocol.
        parameters: label of the parameters, such as `parameters[0]`.
        targets: label of the targets. None if the targets are a parameter.
    """

    limits: Limits
    texts: str = "inputs"
    parameters: str = _PARAMETERS
    targets: str | None = None

    def label(self, name: str) -> str:
        """Return the label of a parameter, with its place if each text has its own parameters."""
        return name if self.parameters == _PARAMETERS else f"{self.parameters}.{name}"


def described(*examples: JsonValue) -> Callable[[dict[str, Any]], None]:
    """Return a function that adds examples to a JSON schema and removes its defaults of null.

    Generators of clients make a field with a default mandatory, even if the default is null.
    """

    def describe_schema(schema: dict[str, Any]) -> None:
        for field in schema["properties"].values():
            if field.get("default", ...) is None:
                del field["default"]
        if examples:
            schema["examples"] = list(examples)

    return describe_schema


class TaskParameters(BaseModel):
    """Base class of the parameters of a task. A null has the same meaning as a missing field.

    Attributes:
        reads_pairs: whether the task reads pairs of texts.
    """

    reads_pairs: ClassVar[bool] = True

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra=described()
    )

    @property
    @abstractmethod
    def options(self) -> Any:
        """The parameters in the form that the task reads, with its defaults."""

    @classmethod
    def read(cls, value: object, context: ValidationContext) -> Self:
        """Check an object of parameters.

        Raises:
            InvalidRequestError: a parameter is unknown or invalid. The message describes the first
                error.
        """
        reject_extra_fields(value, context.parameters, cls)
        try:
            return cls.model_validate(value, context=context)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] in {"extra_forbidden", "invalid_key"}:
                message = unknown_field(str(first["loc"][-1]), context.parameters, cls)
            elif first["type"] == CLIENT_ERROR:
                message = first["msg"]
            else:
                message = f"{context.parameters} must be a JSON object (got {describe(value)})."
            raise InvalidRequestError(message) from None

    @classmethod
    def read_each(cls, value: object, context: ValidationContext) -> Self | list[Self]:
        """Check one object of parameters for all texts, or a list with one object per text.

        Raises:
            InvalidRequestError: as for `read`, or the list is longer than any list of texts.
        """
        if not isinstance(value, list):
            return cls.read(value, context)
        if len(value) > (most := context.limits.max_texts):
            raise InvalidRequestError(
                f"{context.parameters} must have at most {most} objects, one per text "
                f"(got {len(value)}); send fewer or raise FILLMASK_MAX_TEXTS."
            )
        each = []
        for index, item in enumerate(value):
            labelled = context._replace(parameters=f"{context.parameters}[{index}]")
            each.append(cls.read({} if item is None else item, labelled))
        return each


def check_same_length(parameters: object, texts: object, context: ValidationContext) -> None:
    """Check that a list of parameters has one object per text.

    Args:
        parameters: parameters of all texts, or the list with those of each text.
        texts: one text, or the list of texts.

    Raises:
        PydanticCustomError: the lengths differ, or there is only one text.
    """
    if not isinstance(parameters, list):
        return
    if not isinstance(texts, list):
        raise client_error(
            f"parameters is a list but {context.texts} is one text; send one object."
        )
    if len(parameters) != len(texts):
        raise client_error(
            f"parameters must have one object per text of {context.texts}, "
            f"{len(texts)} in total (got {len(parameters)})."
        )


def reject_extra_fields(value: object, label: str, model: type[BaseModel]) -> None:
    """Reject an object with too many fields, because pydantic creates one error per field."""
    if isinstance(value, dict) and len(value) > len(model.model_fields):
        allowed = _names(model)
        unknown = next(name for name in value if name not in allowed)
        raise InvalidRequestError(unknown_field(str(unknown), label, model))


def unknown_field(name: str, label: str, model: type[BaseModel]) -> str:
    """Return the message about a field that an object must not have."""
    return f"Unknown field {quote(name)} in {label}; allowed: {', '.join(_names(model))}."


def _names(model: type[BaseModel]) -> list[str]:
    """Return the names of a model's fields in JSON."""
    return [field.alias or name for name, field in model.model_fields.items()]


def validation_context(info: ValidationInfo) -> ValidationContext:
    """Return the context that the caller passed to pydantic."""
    assert isinstance(info.context, ValidationContext)  # noqa: S101 - every caller passes a context
    return info.context


def check_on_error(value: object) -> OnError | None:
    """Return the policy for invalid texts. None has the same meaning as "error".

    Raises:
        PydanticCustomError: the policy is unknown.
    """
    if value is None or (isinstance(value, str) and value in _ON_ERROR):
        return value
    raise client_error(f"on_error must be {' or '.join(_ON_ERROR)} (got {describe(value)}).")


def one_of(choices: Any) -> BeforeValidator:
    """Return the validator of a parameter that is null or one of the strings of a type."""
    allowed = get_args(getattr(choices, "__value__", choices))

    def check(value: object, info: ValidationInfo) -> object:
        if value is None or (isinstance(value, str) and value in allowed):
            return value
        name = validation_context(info).label(info.field_name or "")
        raise client_error(f"{name} must be {' or '.join(allowed)} (got {describe(value)}).")

    return BeforeValidator(check)


def check_flag(value: object, info: ValidationInfo) -> bool:
    """Return the value of a flag. A null has the same meaning as false.

    Raises:
        PydanticCustomError: the flag has another value.
    """
    if value is None or isinstance(value, bool | np.bool):
        return bool(value)
    raise client_error(f"{info.field_name} must be true or false (got {describe(value)}).")


Flag = Annotated[bool, BeforeValidator(check_flag)]
OptionalFlag = Annotated[
    bool | None,
    BeforeValidator(lambda value, info: None if value is None else check_flag(value, info)),
]


def check_whole_number(
    value: object, info: ValidationInfo, maximum: int | None = None, cure: str = ""
) -> object:
    """Return the value of a parameter as an integer, or None for null.

    Args:
        value: value to check.
        info: name of the parameter and context of the validation.
        maximum: largest allowed number. None means no maximum.
        cure: end of the message about a number above `maximum`.

    Raises:
        PydanticCustomError: the value is neither null nor a whole number from 1 to `maximum`.
    """
    number = integer_of(value)
    if value is None or (number is not None and 1 <= number <= (maximum or number)):
        return number
    name = validation_context(info).label(info.field_name or "")
    allowed = "of at least 1" if maximum is None else f"from 1 to {maximum}"
    end = cure if number is not None and number > 0 else ""
    raise client_error(f"{name} must be a whole number {allowed} (got {describe(value)}){end}.")


WholeNumber = Annotated[int | None, BeforeValidator(check_whole_number)]
