"""Parameters of the task fill-mask."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from typing_extensions import TypeAliasType

from fillmask.parameters.call import CallKeywords
from fillmask.parameters.targets import TargetList
from fillmask.parameters.validation import (
    TaskParameters,
    check_whole_number,
    one_of,
    validation_context,
)
from fillmask.parameters.values import client_error

# named, because generators of clients need names for types that occur twice
Granularity = TypeAliasType("Granularity", Literal["token", "word"])
Strategy = TypeAliasType("Strategy", Literal["independent", "joint"])
Order = TypeAliasType("Order", Literal["confidence", "left_to_right"])
OnLongText = TypeAliasType("OnLongText", Literal["error", "window"])

DEFAULT_TOP_K = 5
DEFAULT_WORD_TOKENS = 3
MAX_WORD_TOKENS = 5


@dataclass(frozen=True, slots=True)
class FillOptions:
    """Options for filling the masks of a text.

    Attributes:
        top_k: maximum number of fills per mask. None means all targets, or DEFAULT_TOP_K without
            targets.
        targets: the only words and phrases to rank. None means all tokens of the vocabulary except
            special tokens.
        granularity: unit of a fill, a token or a whole word.
        max_word_tokens: maximum length of a whole word in tokens, for the granularity word.
        strategy: strategy for several masks of one text, independent or joint.
        order: order in which the joint strategy fills the masks.
        on_long_text: policy for texts that exceed the model's input, either an error or windows
            around the masks.
    """

    top_k: int | None = None
    targets: tuple[str, ...] | None = None
    granularity: Granularity = "token"
    max_word_tokens: int = DEFAULT_WORD_TOKENS
    strategy: Strategy = "independent"
    order: Order = "confidence"
    on_long_text: OnLongText = "error"


class FillMaskKeywords(CallKeywords, total=False):
    """The same parameters as keyword arguments in Python."""

    top_k: int | None
    targets: Sequence[str] | None
    granularity: Granularity | None
    max_word_tokens: int | None
    strategy: Strategy | None
    order: Order | None
    on_long_text: OnLongText | None


class FillMaskParameters(TaskParameters):
    """Parameters of a fill request. A null has the same meaning as a missing field."""

    top_k: int | None = Field(
        default=None,
        ge=1,
        description=f"Maximum number of fills per mask. The default is {DEFAULT_TOP_K}. With "
        "`targets`, the default is the number of targets.",
    )
    targets: TargetList = Field(
        default=None,
        description="Words or phrases to rank in place of each mask, without duplicates. A target "
        "of several tokens has one score for the whole word or phrase.",
    )

    granularity: Annotated[Granularity | None, one_of(Granularity)] = Field(
        default=None,
        description="With token (the default), a fill is a single token. With word, a fill is a "
        "word of one or more tokens.",
    )
    max_word_tokens: Annotated[
        int | None, BeforeValidator(partial(check_whole_number, maximum=MAX_WORD_TOKENS))
    ] = Field(
        default=None,
        ge=1,
        le=MAX_WORD_TOKENS,
        description=f"Maximum number of tokens per word. The default is {DEFAULT_WORD_TOKENS}.",
    )
    strategy: Annotated[Strategy | None, one_of(Strategy)] = Field(
        default=None,
        description="With independent (the default), the model fills each mask on its own. With "
        "joint, the model fills all masks of a text together.",
    )
    order: Annotated[Order | None, one_of(Order)] = Field(
        default=None,
        description="Order in which the strategy joint fills the masks. With confidence (the "
        "default), the mask with the most probable token comes first. With left_to_right, the "
        "leftmost mask comes first.",
    )

    on_long_text: Annotated[OnLongText | None, one_of(OnLongText)] = Field(
        default=None,
        description="With error (the default), the service rejects a text that is longer than the "
        "model's input. With window, the model reads as much text around the masks as fits into "
        "its input. Each fill of a long text contains the start and end of its window.",
    )

    @field_validator("top_k", mode="before")
    @classmethod
    def _check_top_k(cls, value: object, info: ValidationInfo) -> object:
        limits = validation_context(info).limits
        return check_whole_number(value, info, limits.max_top_k, limits.top_k_cure)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
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
            raise client_error(f"{chosen[0]} and {chosen[1]} exclude each other; choose one.")
        return self

    @property
    def options(self) -> FillOptions:
        """The parameters as options of the fill-mask task."""
        given = {name: value for name, value in dict(self).items() if value is not None}
        if self.targets is not None:
            given["targets"] = tuple(self.targets)
        return FillOptions(**given)
