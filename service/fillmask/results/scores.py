"""Scores of texts and of their tokens."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import TypeAdapter

from fillmask.arrays import FloatArray
from fillmask.errors import InvalidRequestError
from fillmask.parameters.score import Part
from fillmask.results.rejected import RejectedText
from fillmask.results.result import Result


@dataclass(frozen=True, slots=True)
class TokenScore(Result):
    """Score of one token.

    Attributes:
        token: the token's id.
        start: index of the token's first character in the text, or in its part of a pair.
        end: index after the token's last character.
        log_prob: log-probability given the tokens that the model sees, in nats.
        surprisal: -log2 of the same probability, in bits.
        part: part of the pair that contains the token. None for a single text.
        target_log_probs: log-probability of each target in place of the token, in nats. None
            without targets.
    """

    token: int
    token_str: str
    start: int
    end: int
    log_prob: float
    surprisal: float
    part: Part | None = None
    target_log_probs: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class TextScore(Result):
    """Score of one text.

    Attributes:
        log_prob: pseudo-log-likelihood, the sum of the tokens' log-probabilities, in nats.
        pseudo_perplexity: exponential of the negative mean log-probability of the tokens.
        rank: rank by log_prob among the texts of the request. The most probable text has rank 1.
        tokens: scores of the scored tokens in order, without special tokens.
    """

    log_prob: float
    pseudo_perplexity: float
    rank: int
    tokens: tuple[TokenScore, ...]


_SCORES = TypeAdapter(list[TextScore | RejectedText]).serializer
_SCORE = TypeAdapter(TextScore).serializer


def rank_scores(scores: Sequence[TextScore | RejectedText]) -> list[TextScore | RejectedText]:
    """Return the scores with the rank of each text among all of them."""
    ascending = sorted(-score.log_prob for score in scores if isinstance(score, TextScore))
    return [
        replace(score, rank=1 + bisect_left(ascending, -score.log_prob))
        if isinstance(score, TextScore)
        else score
        for score in scores
    ]


def target_table(score: TextScore | RejectedText) -> FloatArray | RejectedText:
    """Return the log-probabilities (S, K) of K targets in place of each of S tokens."""
    if isinstance(score, RejectedText):
        return score
    return np.array([token.target_log_probs for token in score.tokens], dtype=np.float32)


def scores_to_json(scores: Sequence[TextScore | RejectedText], *, single: bool) -> bytes:
    """Return the response body.

    Args:
        single: true if the request has one text instead of a list.

    Raises:
        InvalidRequestError: the single text is invalid.
    """
    if single and isinstance(scores[0], RejectedText):
        raise InvalidRequestError(scores[0].error)
    serializer, value = (_SCORE, scores[0]) if single else (_SCORES, scores)
    return serializer.to_json(value, exclude_none=True)
