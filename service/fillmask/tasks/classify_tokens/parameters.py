"""Parameters of the task classify-tokens."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from fillmask.parameters.types import TUPLE
from fillmask.parameters.validation import CallKeywords, TaskParameters

AggregationStrategy = TypeAliasType(
    "AggregationStrategy", Literal["none", "simple", "first", "average", "max"]
)
OnLongTokens = TypeAliasType("OnLongTokens", Literal["error", "window"])
MAX_IGNORED = 1_000
DEFAULT_IGNORED = ("O",)
LabelNames = Annotated[tuple[str, ...], Field(min_length=0, max_length=MAX_IGNORED), TUPLE]


class ClassifyTokensParameters(TaskParameters):
    """Parameters of a request for entities. A null has the same meaning as a missing field."""

    aggregation_strategy: AggregationStrategy | None = Field(
        default=None,
        description="How tokens become entities. none returns each token. simple (the default) "
        "joins neighbours with the same label. The others first give all tokens of a word one "
        "label: that of its first token, of the highest mean score, or of the highest score.",
    )
    ignore_labels: LabelNames | None = Field(
        default=None,
        description="Labels whose tokens or entities the response lacks, with B- and I- only for "
        'aggregation_strategy none. The default is ["O"].',
    )
    on_long_text: OnLongTokens | None = Field(
        default=None,
        description="With error (the default), a text that exceeds the model's input is invalid. "
        "With window, overlapping parts of it are read, and each token has the label of the part "
        "in which it has most context.",
    )


class ClassifyTokensKeywords(CallKeywords, total=False):
    """The same in Python, for type checkers."""

    aggregation_strategy: AggregationStrategy | None
    ignore_labels: Sequence[str] | None
    on_long_text: OnLongTokens | None
