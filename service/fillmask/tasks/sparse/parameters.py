"""Parameters of the task sparse."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

from fillmask.parameters.texts import TruncationOptions
from fillmask.parameters.types import WholeNumber
from fillmask.parameters.validation import TaskParameters
from fillmask.tasks.call import CallKeywords
from fillmask.tasks.classify.parameters import LongInputField, OnLongInput

InputType = TypeAliasType("InputType", Literal["document", "query"])


@dataclass(frozen=True, slots=True)
class SparseOptions(TruncationOptions):
    """The parameters with their defaults."""

    reads_blank = True

    input_type: InputType = "document"
    top_n: int | None = None
    min_weight: float = 0.0


class SparseKeywords(CallKeywords, total=False):
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
    top_n: WholeNumber | None = Field(
        default=None,
        description="Maximum number of dimensions per text, those with the largest weights. The "
        "default is the maximum of the model, if any.",
    )
    min_weight: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="Smallest weight to return (default 0).",
    )

    def options_of(self, **truncation: Any) -> SparseOptions:
        return SparseOptions(
            self.input_type or "document", self.top_n, self.min_weight or 0.0, **truncation
        )


class SparseParameters(SparseFields, TaskParameters):
    """Parameters of a call or a command."""

    reads_pairs = False

    on_long_text: LongInputField = None

    @property
    def options(self) -> SparseOptions:
        return self.options_of(truncate=self.on_long_text and self.on_long_text == "truncate")
