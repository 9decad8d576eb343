"""Parameters of reranking in Python."""

from typing import TypedDict

from pydantic import ValidationInfo, field_validator

from fillmask.parameters.classify import ClassificationOptions
from fillmask.parameters.texts import TextPair, read_text
from fillmask.parameters.validation import TaskParameters, check_flag, check_whole_number
from fillmask.parameters.values import client_error, describe


class RerankKeywords(TypedDict, total=False):
    """Keyword arguments of a call.

    Attributes:
        top_n: maximum number of texts to return. None for all.
        raw_scores: whether a score is the logit instead of its sigmoid.
        truncate: whether a pair that exceeds the model's input loses the end of its longer text.
    """

    top_n: int | None
    raw_scores: bool | None
    truncate: bool | None


class RerankParameters(TaskParameters):
    """Arguments of a call."""

    query: str
    texts: list[str]
    top_n: int | None = None
    raw_scores: bool = False
    truncate: bool = False

    @field_validator("query", mode="before")
    @classmethod
    def _check_query(cls, value: object) -> str:
        return read_text(value, "query")

    @field_validator("texts", mode="before")
    @classmethod
    def _check_texts(cls, value: object) -> list[str]:
        if not isinstance(value, list):
            raise client_error(
                f"texts must be a list of one or more texts (got {describe(value)})."
            )
        return [read_text(one, f"texts[{index}]") for index, one in enumerate(value)]

    @field_validator("top_n", mode="before")
    @classmethod
    def _check_top_n(cls, value: object, info: ValidationInfo) -> object:
        return check_whole_number(value, info)

    @field_validator("raw_scores", "truncate", mode="before")
    @classmethod
    def _check_flags(cls, value: object, info: ValidationInfo) -> object:
        return check_flag(value, info)

    @property
    def pairs(self) -> list[TextPair]:
        """The query with each text."""
        return [TextPair(self.query, text) for text in self.texts]

    @property
    def options(self) -> ClassificationOptions:
        """Options of each pair."""
        return ClassificationOptions(
            function_to_apply="none" if self.raw_scores else "sigmoid", truncate=self.truncate
        )
