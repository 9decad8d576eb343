"""Parameters of the task fill-mask."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from fillmask.errors import InvalidRequestError
from fillmask.parameters.types import INTEGER, TargetList, WholeNumber
from fillmask.parameters.validation import CallKeywords, TaskParameters, ValidationContext

# named, because generators of clients need names for types that occur twice
Granularity = TypeAliasType("Granularity", Literal["token", "word"])
Strategy = TypeAliasType("Strategy", Literal["independent", "joint"])
Order = TypeAliasType("Order", Literal["confidence", "left_to_right"])
OnLongText = TypeAliasType("OnLongText", Literal["error", "window"])

DEFAULT_TOP_K = 5
DEFAULT_WORD_TOKENS = 3
MAX_WORD_TOKENS = 5


class FillMaskParameters(TaskParameters):
    """Parameters of a fill request. A null has the same meaning as a missing field."""

    maxima: ClassVar = {"top_k": "max_top_k"}

    top_k: WholeNumber | None = Field(
        default=None,
        description=f"Maximum number of fills per mask. The default is {DEFAULT_TOP_K}. With "
        "`targets`, the default is the number of targets.",
    )
    targets: TargetList | None = Field(
        default=None,
        description="Words or phrases to rank in place of each mask, without duplicates. A target "
        "of several tokens has one score for the whole word or phrase.",
    )

    granularity: Granularity | None = Field(
        default=None,
        description="With token (the default), a fill is a single token. With word, a fill is a "
        "word of one or more tokens.",
    )
    max_word_tokens: Annotated[int, Field(ge=1, le=MAX_WORD_TOKENS), INTEGER] | None = Field(
        default=None,
        description=f"Maximum number of tokens per word. The default is {DEFAULT_WORD_TOKENS}.",
    )
    strategy: Strategy | None = Field(
        default=None,
        description="With independent (the default), the model fills each mask on its own. With "
        "joint, the model fills all masks of a text together.",
    )
    order: Order | None = Field(
        default=None,
        description="Order in which the strategy joint fills the masks. With confidence (the "
        "default), the mask with the most probable token comes first. With left_to_right, the "
        "leftmost mask comes first.",
    )

    on_long_text: OnLongText | None = Field(
        default=None,
        description="With error (the default), the service rejects a text that is longer than the "
        "model's input. With window, the model reads as much text around the masks as fits into "
        "its input. Each fill of a long text contains the start and end of its window.",
    )

    def check_together(self, context: ValidationContext) -> None:  # noqa: ARG002 - see the base
        chosen = [
            name
            for name, given in (
                ("targets", self.targets is not None),
                ('granularity "word"', self.granularity == "word"),
                ('strategy "joint"', self.strategy == "joint"),
            )
            if given
        ]
        if len(chosen) > 1:
            raise InvalidRequestError(
                f"{chosen[0]} and {chosen[1]} exclude each other; choose one."
            )


class FillMaskKeywords(CallKeywords, total=False):
    """The same in Python, for type checkers."""

    top_k: int | None
    targets: Sequence[str] | None
    granularity: Granularity | None
    max_word_tokens: int | None
    strategy: Strategy | None
    order: Order | None
    on_long_text: OnLongText | None
