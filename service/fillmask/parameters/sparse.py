"""Parameters of the task sparse."""

from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

from pydantic import BaseModel, Field, ValidationInfo, field_validator
from typing_extensions import TypeAliasType

from fillmask.parameters.call import CallKeywords
from fillmask.parameters.classify import ON_LONG_INPUT, OnLongInput
from fillmask.parameters.validation import (
    TaskParameters,
    check_choice,
    check_whole_number,
    validation_context,
)
from fillmask.parameters.values import client_error, describe

InputType = TypeAliasType("InputType", Literal["document", "query"])
_INPUT_TYPES: tuple[InputType, ...] = get_args(InputType.__value__)


@dataclass(frozen=True, slots=True)
class SparseOptions:
    """Options for the sparse vector of a text.

    Attributes:
        input_type: whether the text is a document or a query.
        top_n: maximum number of dimensions. None means the maximum of the model.
        min_weight: smallest weight to return.
        truncate: whether a text that exceeds the model's input loses its end. None means the
            default of the model.
    """

    input_type: InputType = "document"
    top_n: int | None = None
    min_weight: float = 0.0
    truncate: bool | None = None


class SparseKeywords(CallKeywords, total=False):
    """The parameters as keyword arguments in Python."""

    input_type: InputType | None
    top_n: int | None
    min_weight: float | None
    on_long_text: OnLongInput | None


class SparseFields(BaseModel):
    """Parameters that all interfaces share. A null has the same meaning as a missing field."""

    input_type: InputType | None = Field(
        default=None,
        description="Whether the texts are documents (the default) or queries. It matters to "
        "models that read queries without the encoder.",
    )
    top_n: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of dimensions per text, those with the largest weights. The "
        "default is the maximum of the model, if any.",
    )
    min_weight: float | None = Field(
        default=None, ge=0, description="Smallest weight to return (default 0)."
    )

    @field_validator("input_type", mode="before")
    @classmethod
    def _check_input_type(cls, value: object, info: ValidationInfo) -> object:
        return check_choice(value, _INPUT_TYPES, info)

    @field_validator("top_n", mode="before")
    @classmethod
    def _check_top_n(cls, value: object, info: ValidationInfo) -> object:
        return check_whole_number(value, info)

    @field_validator("min_weight", mode="before")
    @classmethod
    def _check_min_weight(cls, value: object, info: ValidationInfo) -> object:
        if value is None or (
            isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < inf
        ):
            return value
        name = validation_context(info).label("min_weight")
        raise client_error(f"{name} must be a number of at least 0 (got {describe(value)}).")

    def options_of(self, *, truncate: bool | None) -> SparseOptions:
        """Return the parameters in the form that the pipeline reads, with its defaults."""
        return SparseOptions(
            self.input_type or "document", self.top_n, self.min_weight or 0.0, truncate
        )


class SparseParameters(SparseFields, TaskParameters):
    """Parameters of a call or a command."""

    on_long_text: OnLongInput | None = Field(
        default=None,
        description="With error, a text that exceeds the model's input is invalid. With truncate, "
        "it loses its last tokens. The default is error, unless the model was published with a "
        "maximum length to which it truncates.",
    )

    @field_validator("on_long_text", mode="before")
    @classmethod
    def _check_on_long_text(cls, value: object, info: ValidationInfo) -> object:
        return check_choice(value, ON_LONG_INPUT, info)

    @property
    def options(self) -> SparseOptions:
        """Parameters in the form that the pipeline reads."""
        given = self.on_long_text
        return self.options_of(truncate=None if given is None else given == "truncate")
