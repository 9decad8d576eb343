"""Parameters of the task score."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from fillmask.errors import InvalidRequestError
from fillmask.parameters.types import INTEGER, TUPLE, TargetList
from fillmask.parameters.validation import CallKeywords, TaskParameters, ValidationContext

Variant = TypeAliasType("Variant", Literal["within_word", "original"])
Part = TypeAliasType("Part", Literal["text", "text_pair"])
DEFAULT_VARIANT: Variant = "within_word"
_Span = Annotated[
    tuple[Annotated[int, Field(ge=0), INTEGER], ...],
    Field(min_length=2, max_length=2, fail_fast=True),
    TUPLE,
]


class ScoreParameters(TaskParameters):
    """Parameters of a score request. A null has the same meaning as a missing field."""

    variant: Variant | None = Field(
        default=None,
        description=f"With {DEFAULT_VARIANT} (the default), the model predicts a token without the "
        "later tokens of its word. With original, the model sees all other tokens of the text. "
        "original is the default with targets.",
    )
    prefix: str | None = Field(
        default=None,
        description="First characters of the text, which are only context. The response has the "
        "scores of the tokens after these characters.",
    )
    span: _Span | None = Field(
        default=None,
        description="Start and end of the part of the text to score, in characters. The rest of "
        "the text is only context. The response has the scores of the tokens in the span.",
    )
    part: Part | None = Field(
        default=None,
        description="Part of a pair to score. The other part is only context. For a pair, `prefix` "
        "and `span` apply to this part.",
    )

    targets: TargetList | None = Field(
        default=None,
        description="Tokens whose log-probabilities in place of each scored token the response "
        "also has, such as the 20 amino acids.",
    )

    def check_together(self, context: ValidationContext) -> None:
        span, prefix = map(context.label, ("span", "prefix"))
        if self.span is not None and self.span[0] >= self.span[1]:
            raise InvalidRequestError(
                f"The start of {span} must be less than its end (got {list(self.span)})."
            )
        if self.span is not None and self.prefix is not None:
            raise InvalidRequestError(f"{span} and {prefix} exclude each other; choose one.")

    @property
    def chosen_variant(self) -> Variant:
        return self.variant or (DEFAULT_VARIANT if self.targets is None else "original")


class ScoreKeywords(CallKeywords, total=False):
    """The same in Python, for type checkers."""

    variant: Variant | None
    prefix: str | None
    span: Sequence[int] | None
    part: Part | None
    targets: Sequence[str] | None
