"""Scores of texts and of their tokens."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field, RootModel, TypeAdapter

from fillmask.arrays import FloatArray
from fillmask.tasks.result import ErrorResponse, RejectedText, Result, fields_of
from fillmask.tasks.score.parameters import Part


@dataclass(frozen=True, slots=True)
class TokenScore(Result):
    """The score of a token."""

    token: Annotated[int, Field(description="Id of the token.")]
    token_str: Annotated[str, Field(description="The token as text.")]
    start: Annotated[
        int,
        Field(
            description="Index of the token's first character in the text, or in its part of a "
            "pair."
        ),
    ]
    end: Annotated[int, Field(description="Index after the token's last character.")]
    log_prob: Annotated[
        float,
        Field(description="Log-probability given the tokens that the model sees, in nats."),
    ]
    surprisal: Annotated[float, Field(description="Minus log2 of the probability, in bits.")]
    part: Annotated[
        Part | None,
        Field(
            description="Part of the pair that contains the token. Only tokens of pairs have this "
            "field."
        ),
    ] = None
    target_log_probs: Annotated[
        tuple[float, ...] | None,
        Field(
            description="Log-probability of each target in place of the token, in nats. Only with "
            "targets."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class TextScore(Result):
    """The scores of one text."""

    log_prob: Annotated[
        float,
        Field(
            description="Pseudo-log-likelihood, the sum of the tokens' log-probabilities, in nats."
        ),
    ]
    pseudo_perplexity: Annotated[
        float, Field(description="Exponential of minus the mean log-probability of the tokens.")
    ]
    rank: Annotated[
        int,
        Field(
            description="Rank among the texts of the request. The most probable text has rank 1."
        ),
    ]
    tokens: Annotated[
        tuple[TokenScore, ...],
        Field(description="Scores of the scored tokens in order, without special tokens."),
    ]


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


def score_to_json(score: TextScore) -> list[bytes]:
    return [_SCORE.to_json(score, exclude_none=True)]


@fields_of(TokenScore)
class TokenScoreBody(BaseModel):
    """The score of a token."""


@fields_of(TextScore)
class TextScoreBody(BaseModel):
    """The scores of one text."""

    tokens: list[TokenScoreBody] = Field(
        description="Scores of the scored tokens in order, without special tokens."
    )


class ScoreResponse(RootModel[TextScoreBody | list[TextScoreBody | ErrorResponse]]):
    """The scores of one text, or a list with the scores of each text."""
