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
class LabelledTokens:
    """Tokens, or words, before the aggregation.

    Attributes:
        indices: position of each among the text's tokens, special tokens included.
        names: name in the vocabulary, the text of an unknown token, or that of a word.
        spans: start and end in the text, in characters.
        scores: probabilities (t, L) of the labels.
    """

    indices: Sequence[int]
    names: Sequence[str]
    spans: Sequence[tuple[int, int]]
    scores: NDArray[np.float64]

    def part(self, start: int, end: int) -> "LabelledTokens":
        own = slice(start, end)
        return LabelledTokens(self.indices[own], self.names[own], self.spans[own], self.scores[own])


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
    tokens: LabelledTokens,
    continues: Sequence[bool],
    strategy: str,
    join: Callable[[Sequence[str]], str],
) -> LabelledTokens:
    """Return each word as one token, whose label all its tokens have.

    Args:
        continues: whether each token belongs to the word before it.
        strategy: first, average or max.
        join: function that returns the text of several tokens.
    """
    begins = [index for index, joins in enumerate(continues) if not index or not joins]
    words = list(pairwise([*begins, len(continues)]))
    scores_tL = tokens.scores
    if strategy == "average":
        scores = np.array([scores_tL[first:end].mean(axis=0) for first, end in words])
    elif strategy == "max":
        most_t = scores_tL.max(axis=1)
        scores = scores_tL[[first + int(most_t[first:end].argmax()) for first, end in words]]
    else:
        scores = scores_tL[begins]
    return LabelledTokens(
        [tokens.indices[first] for first in begins],
        [join(tokens.names[first:end]) for first, end in words],
        [(tokens.spans[first][0], tokens.spans[end - 1][1]) for first, end in words],
        scores,
    )
