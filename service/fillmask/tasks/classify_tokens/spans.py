"""Tokens with labels become entities, as in the token-classification pipeline of transformers.

Labels in the form of Ramshaw and Marcus (1995) begin with B- at the first token of an entity and
with I- at the others. A label without either continues an entity with the same label.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fillmask.arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LabelledToken:
    """A token, or the tokens of a word, before the aggregation.

    Attributes:
        index: position among the text's tokens, special tokens included.
        name: name in the vocabulary, the text of an unknown token, or that of a word.
        scores: probability (L,) of each label.
        continues: whether the token belongs to the word before it.
    """

    index: int
    name: str
    start: int
    end: int
    scores: NDArray[np.float64]
    continues: bool


def log_softmax(logits_TL: FloatArray) -> NDArray[np.float64]:
    """Return the log-probability (T, L) of each label at each token."""
    wide_TL = logits_TL.astype(np.float64)
    with np.errstate(invalid="ignore"):  # NaN stays NaN
        totals_T1 = np.logaddexp.reduce(wide_TL, axis=1, keepdims=True)
    found: NDArray[np.float64] = wide_TL - totals_T1
    return found


def tag_of(label: str) -> str:
    """Return a label as the name of an entity, without what precedes the first hyphen."""
    return label.split("-", 1)[-1]


def labelled_runs(labels: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each entity with the index of its first token and the index after it."""
    begins = [
        index
        for index, label in enumerate(labels)
        if not index or label.startswith("B-") or _kind(label) != _kind(labels[index - 1])
    ]
    for first, end in pairwise([*begins, len(labels)]):
        yield tag_of(labels[first]), first, end


def _kind(label: str) -> str:
    return label[2:] if label.startswith(("B-", "I-")) else label


def words_of(
    tokens: Sequence[LabelledToken], strategy: str, join: Callable[[Sequence[str]], str]
) -> Iterator[LabelledToken]:
    """Yield each word as one token, whose label all its tokens have.

    Args:
        strategy: first, average or max.
        join: function that returns the text of several tokens.
    """
    begins = [index for index, token in enumerate(tokens) if not index or not token.continues]
    for first, end in pairwise([*begins, len(tokens)]):
        own = tokens[first:end]
        scores = own[0].scores
        if strategy == "max":
            scores = max(own, key=lambda one: float(one.scores.max())).scores
        elif strategy == "average":
            scores = np.mean([one.scores for one in own], axis=0)
        name = join([one.name for one in own])
        yield LabelledToken(own[0].index, name, own[0].start, own[-1].end, scores, continues=False)
