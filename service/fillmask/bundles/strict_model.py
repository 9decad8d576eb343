"""Base of the pydantic models of bundle.json, with the types of their fields.

Strict models do not convert values, for example the text "1" to a number. Unknown fields are
errors, except in the figures of the verification.
"""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fillmask.bundles.validation import unknown_field

_Entry = TypeVar("_Entry")
Size = Annotated[int, Field(ge=1)]
TokenId = Annotated[int, Field(ge=0)]
# JSON has no tuples. fail_fast stops at the first invalid entry, because millions of errors take
# gigabytes of memory.
List = Annotated[tuple[_Entry, ...], Field(strict=False, fail_fast=True)]
FilledList = Annotated[tuple[_Entry, ...], Field(strict=False, fail_fast=True, min_length=1)]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: object) -> object:
        """Reject an object with too many fields, because pydantic creates one error per field."""
        allowed = {field.alias or name for name, field in cls.model_fields.items()}
        if (
            cls.model_config["extra"] == "forbid"
            and isinstance(value, dict)
            and len(value) > len(allowed)
        ):
            raise unknown_field(next(name for name in value if name not in allowed))
        return value
