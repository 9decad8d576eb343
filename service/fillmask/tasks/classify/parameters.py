"""Parameters of the task classify."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from fillmask.parameters.texts import Truncation
from fillmask.parameters.types import WholeNumber
from fillmask.parameters.validation import CallKeywords, TaskParameters

FunctionToApply = TypeAliasType("FunctionToApply", Literal["softmax", "sigmoid", "none"])
OnLongInput = TypeAliasType("OnLongInput", Literal["error", "truncate"])
LongInputField = Annotated[
    OnLongInput | None,
    Field(
        description="With error, a text that exceeds the model's input is invalid. With truncate, "
        "it loses its last tokens, and a pair those of its longer part. The default is error, "
        "unless the service has auto_truncate or the model was published with a maximum length to "
        "which it truncates."
    ),
]


class ClassifyParameters(TaskParameters):
    """Parameters of a classification request. A null has the same meaning as a missing field."""

    top_k: WholeNumber | None = Field(
        default=None,
        description="Maximum number of labels per text. The default is all labels of the model.",
    )
    function_to_apply: FunctionToApply | None = Field(
        default=None,
        description="Function from logits to scores. The default is none for regression, sigmoid "
        "for several labels per text, and softmax for one label per text.",
    )
    on_long_text: LongInputField = None

    @property
    def truncation(self) -> Truncation:
        return Truncation(self.on_long_text and self.on_long_text == "truncate")


class ClassifyKeywords(CallKeywords, total=False):
    """The same in Python, for type checkers."""

    top_k: int | None
    function_to_apply: FunctionToApply | None
    on_long_text: OnLongInput | None
