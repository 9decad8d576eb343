"""Texts in the order of their relevance to a query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from fillmask.tasks.classify.results import LabelScore
from fillmask.tasks.result import Result


@dataclass(frozen=True, slots=True)
class RankedText(Result):
    """A text with its score."""

    index: Annotated[int, Field(description="Index of the text in the request, from 0.")]
    score: Annotated[
        float, Field(description="Probability that the text is relevant, or its logit.")
    ]


def rank_texts(labels: Sequence[list[LabelScore]], top_n: int | None = None) -> list[RankedText]:
    """Return the texts with the best scores, best first. Equal texts keep their order."""
    ranked = [RankedText(index, one.score) for index, [one] in enumerate(labels)]
    ranked.sort(key=lambda text: -text.score)
    return ranked[:top_n]
