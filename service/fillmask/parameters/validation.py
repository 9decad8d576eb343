"""Validation of objects from clients, with one sentence for each refusal.

HTTP, the command and Python validate here, so they refuse the same values in the same words. A rule
stands once, as the type of a field: OpenAPI shows its JSON schema, and `_allowed` says it in words.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypedDict

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails
from typing_extensions import TypeAliasType

from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.limits import Limits
from fillmask.parameters.values import describe, describe_items

OnError = TypeAliasType("OnError", Literal["error", "report"])
BODY, PARAMETERS = "the body", "parameters"


class ValidationContext(NamedTuple):
    """Limits of a request, with the labels of its fields in error messages.

    Attributes:
        texts: label of the texts, such as `instances` in the V1 protocol.
        place: name of the object, such as `parameters[0]`.
    """

    limits: Limits
    texts: str = "inputs"
    place: str = PARAMETERS

    def label(self, name: str) -> str:
        """Return the label of a field, with its place if a request has several such objects."""
        return name if self.place in {BODY, PARAMETERS} else f"{self.place}.{name}"


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


class ClientObject(BaseModel):
    """Base class of objects from clients.

    Attributes:
        maxima: limit of a request that is the maximum of a field, by field.
        missing_cure: end of the message about a missing field.
    """

    maxima: ClassVar[Mapping[str, str]] = {}
    missing_cure: ClassVar[str] = ""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, json_schema_extra=described()
    )

    @classmethod
    def check(cls, value: object, context: ValidationContext) -> Self:
        """Check an object, or raise InvalidRequestError with the sentence of the first error."""
        # pydantic creates one error per unknown field
        if isinstance(value, dict) and len(value) > len(cls.model_fields):
            allowed = _names(cls)
            unknown = next(name for name in value if name not in allowed)
            raise InvalidRequestError(_unknown_field(unknown, context, cls))
        try:
            checked = cls.model_validate(value, context=context)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InvalidRequestError(_sentence(cls, value, first, context)) from None
        for name, limit in cls.maxima.items():
            number, most = getattr(checked, name), getattr(context.limits, limit)
            if number is not None and number > most:
                refusal = _refusal(cls, [name], value, context).removesuffix(".")
                raise InvalidRequestError(f"{refusal}{context.limits.top_k_cure}.")
        return checked


class TaskParameters(ClientObject):
    """Base class of the parameters of a task. A null has the same meaning as a missing field.

    Attributes:
        reads_pairs: whether the task reads pairs of texts.
    """

    reads_pairs: ClassVar[bool] = True

    def check_together(self, context: ValidationContext) -> None:
        """Raise InvalidRequestError if parameters exclude each other."""

    @classmethod
    def read(cls, value: object, context: ValidationContext) -> Self:
        read = cls.check(value, context)
        read.check_together(context)
        return read

    @classmethod
    def read_each(cls, value: object, context: ValidationContext) -> Self | list[Self]:
        """Check one object of parameters for all texts, or a list with one object per text."""
        if not isinstance(value, list):
            return cls.read(value, context)
        if len(value) > (most := context.limits.max_texts):
            raise InvalidRequestError(
                f"{context.place} must have at most {most} objects, one per text "
                f"(got {len(value)}); send fewer or raise FILLMASK_MAX_TEXTS."
            )
        return [
            cls.read(
                {} if item is None else item, context._replace(place=f"{context.place}[{index}]")
            )
            for index, item in enumerate(value)
        ]


class CallKeywords(TypedDict, total=False):
    """Arguments of every task in Python, for type checkers."""

    parameters: Iterable[Mapping[str, Any] | None] | None
    on_error: OnError | None


def check_same_length(parameters: object, texts: object, context: ValidationContext) -> None:
    """Raise InvalidRequestError if a list of parameters has not one object per text."""
    if not isinstance(parameters, list):
        return
    if not isinstance(texts, list):
        raise InvalidRequestError(
            f"parameters is a list but {context.texts} is one text; send one object."
        )
    if len(parameters) != len(texts):
        raise InvalidRequestError(
            f"parameters must have one object per text of {context.texts}, "
            f"{len(texts)} in total (got {len(parameters)})."
        )


def validation_context(info: ValidationInfo) -> ValidationContext:
    assert isinstance(info.context, ValidationContext)  # noqa: S101 - every caller passes a context
    return info.context


def _sentence(
    model: type[ClientObject], value: Any, error: ErrorDetails, context: ValidationContext
) -> str:
    own = error.get("ctx", {}).get("error")
    if isinstance(own, InvalidRequestError):
        return own.text
    if not error["loc"]:
        place = "The body" if context.place == BODY else context.place
        return f"{place} must be a JSON object (got {describe(value)})."
    [name, *path] = error["loc"]
    if error["type"] in {"extra_forbidden", "invalid_key"}:
        return _unknown_field(name, context, model)
    if error["type"] == "missing":
        return f"{name} is missing{model.missing_cure}."
    return _refusal(model, [name, *path], value, context)


def _refusal(
    model: type[ClientObject], path: list[int | str], value: Any, context: ValidationContext
) -> str:
    """Return the message about a value that the type of its field does not allow."""
    [name, *index] = path
    schema, given, label = _schemas(model)[str(name)], value[name], context.label(str(name))
    told, items = schema["description"], schema.get("items", {})
    got = describe(given)
    if index and items["type"] == "string":
        got = describe(given[index[0]])
        schema, label = items, f"{label}{index}"
    elif items and isinstance(given, list):
        is_text = items["type"] == "string"
        got = f"a list of {len(given)}" if is_text else describe_items(given)
    if told.startswith("Only "):
        allowed, reason = told.removeprefix("Only ").split("; ", 1)
        return f"{name} must be {allowed} (got {got}); {reason}"
    if name in model.maxima:
        schema = {**schema, "maximum": getattr(context.limits, model.maxima[str(name)])}
    return f"{label} must be {_allowed(schema)} (got {got})."


@cache
def _schemas(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each field, without null and without references."""
    document = model.model_json_schema()
    schemas = {}
    for name, field in document["properties"].items():
        chosen = field.get("anyOf", [field])[0]
        if "$ref" in chosen:
            chosen = document["$defs"][chosen["$ref"].rpartition("/")[2]]
        schemas[name] = {**chosen, "description": field.get("description", "")}
    return schemas


def _allowed(schema: Mapping[str, Any]) -> str:
    """Return what a JSON schema allows, in words."""
    match schema:
        case {"enum": choices}:
            allowed = " or ".join(choices)
        case {"type": "boolean"}:
            allowed = "true or false"
        case {"type": "integer", "minimum": least, "maximum": most}:
            allowed = f"a whole number from {least} to {most}"
        case {"type": "integer", "minimum": least}:
            allowed = f"a whole number of at least {least}"
        case {"type": "number", "minimum": least}:
            allowed = f"a number of at least {least}"
        case {"items": {"type": "integer", "minimum": least}}:
            allowed = f"[start, end] with two whole numbers of at least {least}"
        case {"type": "array", "minItems": least, "maxItems": most}:
            allowed = f"a list of {least} to {most} texts"
        case {"type": "string"}:
            allowed = "a non-blank text" if "pattern" in schema else "a text"
        case _:
            allowed = "a JSON object"
    return allowed


def _unknown_field(name: object, context: ValidationContext, model: type[BaseModel]) -> str:
    allowed = ", ".join(_names(model))
    return f"Unknown field {quote(str(name))} in {context.place}; allowed: {allowed}."


def _names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
