"""Parameters of reranking, over HTTP and in Python."""

from typing import Annotated, TypedDict

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo, field_validator

from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import TextPair, Truncation, read_text, read_texts
from fillmask.parameters.types import NOT_BLANK, Flag, WholeNumber
from fillmask.parameters.validation import TaskParameters, validation_context
from fillmask.tasks.classify.parameters import FunctionToApply

NonBlank = Annotated[
    str,
    Field(pattern=NOT_BLANK),
    BeforeValidator(lambda value, info: read_text(value, info.field_name)),
]


class RankFields(BaseModel):
    """Parameters that all interfaces share."""

    query: NonBlank = Field(description="The query, the first text of every pair.")
    top_n: WholeNumber | None = Field(
        default=None, description="Maximum number of texts in the response."
    )
    raw_scores: Flag = Field(
        default=False, description="Whether a score is the logit instead of its sigmoid."
    )

    @property
    def top_k(self) -> None:
        """The only label of a model that reranks."""

    @property
    def function_to_apply(self) -> FunctionToApply:
        return "none" if self.raw_scores else "sigmoid"


class RerankParameters(RankFields, TaskParameters):
    """Arguments of a call."""

    texts: list[str]
    truncate: Flag = False

    @field_validator("texts", mode="before")
    @classmethod
    def _check_texts(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, list) and not value:  # in Python, no texts have no results
            return value
        return read_ranked(value, "texts", validation_context(info).limits.max_texts)

    @property
    def pairs(self) -> list[TextPair]:
        return [TextPair(self.query, text) for text in self.texts]

    @property
    def truncation(self) -> Truncation:
        return Truncation(self.truncate, cure="truncate to true")


def read_ranked(value: object, label: str, max_texts: int, form: str = "a text") -> list[str]:
    """Return texts to order, of which some may be blank."""
    texts = read_texts(value, label, max_texts, form)
    if not any(map(str.strip, texts)):
        raise InvalidRequestError(f"{label} has no tokens; write at least one word.")
    return texts


class RerankKeywords(TypedDict, total=False):
    """The same in Python, for type checkers."""

    top_n: int | None
    raw_scores: bool | None
    truncate: bool | None
