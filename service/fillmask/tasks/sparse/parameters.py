"""Parameters of the task sparse."""

from typing import Literal

from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

from fillmask.parameters.texts import Truncation
from fillmask.parameters.types import WholeNumber
from fillmask.parameters.validation import CallKeywords, TaskParameters
from fillmask.tasks.classify.parameters import LongInputField, OnLongInput

InputType = TypeAliasType("InputType", Literal["document", "query"])


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


class SparseParameters(SparseFields, TaskParameters):
    """Parameters of a call or a command."""

    reads_pairs = False

    on_long_text: LongInputField = None

    @property
    def truncation(self) -> Truncation:
        return Truncation(self.on_long_text and self.on_long_text == "truncate")


class SparseKeywords(CallKeywords, total=False):
    """The same in Python, for type checkers."""

    input_type: InputType | None
    top_n: int | None
    min_weight: float | None
    on_long_text: OnLongInput | None
