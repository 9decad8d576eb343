"""Labels of texts with their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter

from fillmask.errors import InvalidRequestError
from fillmask.tasks.rejected import RejectedText
from fillmask.tasks.result import Result


@dataclass(frozen=True, slots=True)
class LabelScore(Result):
    """A label of a text, with its score."""

    label: Annotated[str, Field(description="Name of the label.")]
    score: Annotated[
        float, Field(description="Probability of the label, or its logit for function none.")
    ]


@dataclass(frozen=True, slots=True)
class ClassificationResult:
    """The labels of each text, best first, or the error of the text.

    Attributes:
        is_large: true if serializing takes too long for the event loop.
    """

    labels: Sequence[list[LabelScore] | RejectedText]
    is_large: bool

    @property
    def accepted(self) -> list[list[LabelScore]]:
        """Labels of the texts without an error."""
        return [one for one in self.labels if not isinstance(one, RejectedText)]


_LABELS = TypeAdapter(list[LabelScore]).serializer
_REJECTED_TEXT = TypeAdapter(RejectedText).serializer


def labels_to_json(labels: Sequence[list[LabelScore] | RejectedText], *, single: bool) -> bytes:
    """Return the response body, or raise the error of a single text."""
    if single and isinstance(labels[0], RejectedText):
        raise InvalidRequestError(labels[0].error)
    # one text per call, because a single call for a large result blocks all other threads
    texts = [
        _REJECTED_TEXT.to_json(one) if isinstance(one, RejectedText) else _LABELS.to_json(one)
        for one in labels
    ]
    return b"[" + b",".join(texts) + b"]"
