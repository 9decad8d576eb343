"""Parameters of the task score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from typing_extensions import TypeAliasType

from fillmask.parameters.call import CallKeywords
from fillmask.parameters.targets import TargetList
from fillmask.parameters.validation import TaskParameters, one_of, validation_context
from fillmask.parameters.values import client_error, describe, integer_of

Variant = TypeAliasType("Variant", Literal["within_word", "original"])
Part = TypeAliasType("Part", Literal["text", "text_pair"])
DEFAULT_VARIANT: Variant = "within_word"


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """Options for scoring a text.

    The other tokens of the text are context, which the model reads without scoring it.

    Attributes:
        variant: selection of the tokens to mask besides the predicted token.
        span: start and end of the characters to score. None means all characters.
        prefix: the first characters of the text, which are context. None means no prefix.
        part: part of a pair to score, in which `span` and `prefix` apply. None means the whole
            text or both parts.
        targets: texts of one token each, whose log-probabilities at each scored token are also
            returned. None means no targets.
    """

    variant: Variant = DEFAULT_VARIANT
    span: tuple[int, int] | None = None
    prefix: str | None = None
    part: Part | None = None
    targets: tuple[str, ...] | None = None


class ScoreKeywords(CallKeywords, total=False):
    """The same parameters as keyword arguments in Python."""

    variant: Variant | None
    prefix: str | None
    span: Sequence[int] | None
    part: Part | None
    targets: Sequence[str] | None


class ScoreParameters(TaskParameters):
    """Parameters of a score request. A null has the same meaning as a missing field."""

    variant: Annotated[Variant | None, one_of(Variant)] = Field(
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
    span: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="Start and end of the part of the text to score, in characters. The rest of "
        "the text is only context. The response has the scores of the tokens in the span.",
    )
    part: Annotated[Part | None, one_of(Part)] = Field(
        default=None,
        description="Part of a pair to score. The other part is only context. For a pair, `prefix` "
        "and `span` apply to this part.",
    )

    targets: TargetList = Field(
        default=None,
        description="Tokens whose log-probabilities in place of each scored token the response "
        "also has, such as the 20 amino acids.",
    )

    @field_validator("prefix", mode="before")
    @classmethod
    def _check_prefix(cls, value: object, info: ValidationInfo) -> object:
        if value is None or isinstance(value, str):
            return value
        name = validation_context(info).label("prefix")
        raise client_error(f"{name} must be a text (got {describe(value)}).")

    @field_validator("span", mode="before")
    @classmethod
    def _check_span(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            return value
        name = validation_context(info).label("span")
        span = [integer_of(one) for one in value[:3]] if isinstance(value, list | tuple) else []
        numbers = [one for one in span if one is not None and one >= 0]
        if len(span) != 2 or len(numbers) != 2:
            raise client_error(
                f"{name} must be [start, end] with two whole numbers of at least 0 "
                f"(got {_describe_span(value)})."
            )
        if numbers[0] >= numbers[1]:
            raise client_error(f"The start of {name} must be less than its end (got {numbers}).")
        return numbers

    @model_validator(mode="after")
    def _check_together(self, info: ValidationInfo) -> Self:
        if self.span is not None and self.prefix is not None:
            span, prefix = map(validation_context(info).label, ("span", "prefix"))
            raise client_error(f"{span} and {prefix} exclude each other; choose one.")
        return self

    @property
    def options(self) -> ScoreOptions:
        """Parameters in the form that the scoring pipeline reads."""
        span = None if self.span is None else (self.span[0], self.span[1])
        targets = None if self.targets is None else tuple(self.targets)
        default = DEFAULT_VARIANT if targets is None else "original"
        return ScoreOptions(self.variant or default, span, self.prefix, self.part, targets)


def _describe_span(value: object) -> str:
    """Return the start of a JSON value, also of a list."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(describe, value[:3]))}{', …' if len(value) > 3 else ''}]"
    return describe(value)
