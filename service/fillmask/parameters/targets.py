"""Lists of targets, which fills rank and scores look up."""

from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema

from fillmask.errors import quote
from fillmask.parameters.validation import validation_context
from fillmask.parameters.values import NOT_BLANK, client_error, describe

MAX_TARGETS = 10_000  # in one object of parameters


def _check_target_list(value: object, info: ValidationInfo) -> object:
    """Return the value of the parameter `targets` if it is null or a list of different texts.

    Raises:
        PydanticCustomError: the value is anything else.
    """
    if value is None:
        return value
    context = validation_context(info)
    name = context.targets or context.label("targets")
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_TARGETS:
        got = f"a list of {len(value)}" if isinstance(value, list) else describe(value)
        raise client_error(f"{name} must be a list of 1 to {MAX_TARGETS} texts (got {got}).")
    seen = set()
    for index, target in enumerate(value):
        if not isinstance(target, str) or not target.strip():
            raise client_error(
                f"{name}[{index}] must be a non-blank text (got {describe(target)})."
            )
        if target in seen:
            raise client_error(f"The target {quote(target)} is a duplicate; list it once.")
        seen.add(target)
    return value


TargetList = Annotated[
    Annotated[
        list[Annotated[str, WithJsonSchema({"type": "string", "pattern": NOT_BLANK})]],
        Field(min_length=1, max_length=MAX_TARGETS, json_schema_extra={"uniqueItems": True}),
    ]
    | None,
    BeforeValidator(_check_target_list),
]
