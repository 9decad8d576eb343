"""Labels of texts with their scores."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, RootModel, TypeAdapter

from fillmask.tasks.result import ErrorResponse, Result, fields_of


@dataclass(frozen=True, slots=True)
class LabelScore(Result):
    """A label of a text, with its score."""

    label: Annotated[str, Field(description="Name of the label.")]
    score: Annotated[
        float, Field(description="Probability of the label, or its logit for function none.")
    ]


_LABELS = TypeAdapter(list[LabelScore]).serializer


def labels_to_json(labels: list[LabelScore]) -> list[bytes]:
    return [_LABELS.to_json(labels)]


@fields_of(LabelScore)
class LabelBody(BaseModel):
    """A label of a text, with its score."""


class ClassifyResponse(RootModel[list[list[LabelBody] | ErrorResponse]]):
    """The labels of each text, best first. The body for a single text is a list with one list."""
