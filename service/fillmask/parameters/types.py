"""Types of the fields that several tasks have in common."""

from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.validation import OnError
from fillmask.parameters.values import integer_of

NOT_BLANK = r"\S"  # at least one character that is not white space
MAX_TARGETS = 10_000  # in one object of parameters


def _integer(value: object) -> object:
    number = integer_of(value)
    return value if number is None else number


def _flag(value: object) -> object:
    return bool(value) if value is None or isinstance(value, np.bool) else value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _different(texts: tuple[str, ...]) -> tuple[str, ...]:
    seen = set()
    for text in texts:
        if text in seen:
            raise InvalidRequestError(f"The target {quote(text)} is a duplicate; list it once.")
        seen.add(text)
    return texts


# parameters are keys of a dictionary, which lists can't be
TUPLE = BeforeValidator(_tuple)
# JSON does not distinguish 5.0 from 5, and NumPy has integers and flags of its own. A null has the
# same meaning as false.
INTEGER = BeforeValidator(_integer)
WholeNumber = Annotated[int, Field(ge=1), INTEGER]
Flag = Annotated[bool, BeforeValidator(_flag)]
Target = Annotated[
    str, AfterValidator(_not_blank), WithJsonSchema({"type": "string", "pattern": NOT_BLANK})
]
# fail_fast stops at the first invalid item, because thousands of errors take too much memory
TargetList = Annotated[
    tuple[Target, ...],
    Field(
        min_length=1,
        max_length=MAX_TARGETS,
        fail_fast=True,
        json_schema_extra={"uniqueItems": True},
    ),
    TUPLE,
    AfterValidator(_different),
]
OnErrorField = Annotated[
    OnError | None,
    Field(
        description="With error (the default), an invalid text fails the request. With report, the "
        "response contains an error in place of the text's results."
    ),
]
