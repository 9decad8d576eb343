"""Parameters of reranking in Python."""

from collections.abc import Iterable
from typing import Any, TypedDict

from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import TextPair
from fillmask.parameters.values import describe, integer_of


class RerankKeywords(TypedDict, total=False):
    """Keyword arguments of a call.

    Attributes:
        top_n: maximum number of texts to return. None for all.
        raw_scores: whether a score is the logit instead of its sigmoid.
        truncate: whether a pair that exceeds the model's input loses the end of its longer text.
    """

    top_n: int | None
    raw_scores: bool
    truncate: bool


def read_pairs(query: str, texts: Iterable[str]) -> list[TextPair]:
    """Return the query with each text.

    Raises:
        InvalidRequestError: `texts` is one text.
    """
    if isinstance(texts, str):
        raise InvalidRequestError("texts must be a list or another iterable (got one text).")
    return [TextPair(query, text) for text in texts]


def read_top_n(value: object) -> int | None:
    """Return the maximum number of texts.

    Raises:
        InvalidRequestError: the value is neither None nor a whole number of at least 1.
    """
    number = integer_of(value)
    if value is None or (number is not None and number >= 1):
        return number
    raise InvalidRequestError(
        f"top_n must be a whole number of at least 1 (got {describe(value)})."
    )


def classify_keywords(*, raw_scores: bool = False, truncate: bool = False) -> dict[str, Any]:
    """Return the parameters of the classification of the pairs."""
    return {
        "function_to_apply": "none" if raw_scores else "sigmoid",
        "on_long_text": "truncate" if truncate else "error",
    }
