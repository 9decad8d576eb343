"""Parameters of the task classify."""

from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import Field, ValidationInfo, field_validator
from typing_extensions import TypeAliasType

from fillmask.parameters.call import CallKeywords
from fillmask.parameters.validation import TaskParameters, check_choice, check_whole_number

FunctionToApply = TypeAliasType("FunctionToApply", Literal["softmax", "sigmoid", "none"])
_FUNCTIONS: tuple[FunctionToApply, ...] = get_args(FunctionToApply.__value__)
OnLongInput = TypeAliasType("OnLongInput", Literal["error", "truncate"])
ON_LONG_INPUT: tuple[OnLongInput, ...] = get_args(OnLongInput.__value__)


@dataclass(frozen=True, slots=True)
class ClassificationOptions:
    """Options for classifying a text.

    Attributes:
        top_k: maximum number of labels. None means all labels.
        function_to_apply: function from logits to scores. None means the function of the model's
            problem type.
        truncate: whether a text that exceeds the model's input loses its end.
    """

    top_k: int | None = None
    function_to_apply: FunctionToApply | None = None
    truncate: bool = False


class ClassifyKeywords(CallKeywords, total=False):
    """The same parameters as keyword arguments in Python."""

    top_k: int | None
    function_to_apply: FunctionToApply | None
    on_long_text: OnLongInput | None


class ClassifyParameters(TaskParameters):
    """Parameters of a classification request. A null has the same meaning as a missing field."""

    top_k: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of labels per text. The default is all labels of the model.",
    )
    function_to_apply: FunctionToApply | None = Field(
        default=None,
        description="Function from logits to scores. The default is none for regression, sigmoid "
        "for several labels per text, and softmax for one label per text.",
    )
    on_long_text: OnLongInput | None = Field(
        default=None,
        description="With error (the default), a text that exceeds the model's input is invalid. "
        "With truncate, it loses its last tokens, and a pair those of its longer part.",
    )

    @field_validator("top_k", mode="before")
    @classmethod
    def _check_top_k(cls, value: object, info: ValidationInfo) -> object:
        return check_whole_number(value, info)

    @field_validator("function_to_apply", mode="before")
    @classmethod
    def _check_function(cls, value: object, info: ValidationInfo) -> object:
        return check_choice(value, _FUNCTIONS, info)

    @field_validator("on_long_text", mode="before")
    @classmethod
    def _check_on_long_text(cls, value: object, info: ValidationInfo) -> object:
        return check_choice(value, ON_LONG_INPUT, info)

    @property
    def options(self) -> ClassificationOptions:
        """Parameters in the form that the classification pipeline reads."""
        return ClassificationOptions(
            self.top_k, self.function_to_apply, truncate=self.on_long_text == "truncate"
        )
