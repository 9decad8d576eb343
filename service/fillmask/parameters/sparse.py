"""Parameters of the task sparse."""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationInfo, field_validator
from typing_extensions import TypeAliasType

from fillmask.parameters.call import CallKeywords
from fillmask.parameters.classify import LongInputField, OnLongInput
from fillmask.parameters.texts import TruncationOptions
from fillmask.parameters.validation import (
    TaskParameters,
    WholeNumber,
    one_of,
    validation_context,
)
from fillmask.parameters.values import client_error, describe

InputType = TypeAliasType("InputType", Literal["document", "query"])


@dataclass(frozen=True, slots=True)
class SparseOptions(TruncationOptions):
    """Options for the sparse vector of a text.

    Attributes:
        input_type: whether the text is a document or a query.
        top_n: maximum number of dimensions. None means the maximum of the model.
        min_weight: smallest weight to return.
    """

    reads_blank = True

    input_type: InputType = "document"
    top_n: int | None = None
    min_weight: float = 0.0


class SparseKeywords(CallKeywords, total=False):
    """The parameters as keyword arguments in Python."""

    input_type: InputType | None
    top_n: int | None
    min_weight: float | None
    on_long_text: OnLongInput | None


class SparseFields(BaseModel):
    """Parameters that all interfaces share. A null has the same meaning as a missing field."""

    input_type: Annotated[InputType | None, one_of(InputType)] = Field(
        default=None,
        description="Whether the texts are documents (the default) or queries. It matters to "
        "models that read queries without the encoder.",
    )
    top_n: WholeNumber = Field(
        default=None,
        ge=1,
        description="Maximum number of dimensions per text, those with the largest weights. The "
        "default is the maximum of the model, if any.",
    )
    min_weight: float | None = Field(
        default=None, ge=0, description="Smallest weight to return (default 0)."
    )

    @field_validator("min_weight", mode="before")
    @classmethod
    def _check_min_weight(cls, value: object, info: ValidationInfo) -> object:
        if value is None or (
            isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < inf
        ):
            return value
        name = validation_context(info).label("min_weight")
        raise client_error(f"{name} must be a number of at least 0 (got {describe(value)}).")

    def options_of(self, **truncation: Any) -> SparseOptions:
        """Return the parameters with those of `TruncationOptions`, as the pipeline reads them."""
        return SparseOptions(
            self.input_type or "document", self.top_n, self.min_weight or 0.0, **truncation
        )


class SparseParameters(SparseFields, TaskParameters):
    """Parameters of a call or a command."""

    reads_pairs = False

    on_long_text: LongInputField = None

    @property
    def options(self) -> SparseOptions:
        """Parameters in the form that the pipeline reads."""
        return self.options_of(truncate=self.on_long_text and self.on_long_text == "truncate")
