"""From the graph's ids and log-probabilities to fills: ordinary tokens, best first, as text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.batch import Fills, IntArray
from service.tokenizer import EncodedText, Tokenizer


@dataclass(slots=True)  # not frozen: that would make each cost three times as much to create
class Fill:
    """One proposal for one mask.

    Attributes:
        score: probability over the whole vocabulary.
        token: its id.
        token_str: the token as text.
        sequence: the user's text with this mask filled.
    """

    score: float
    token: int
    token_str: str
    sequence: str


def rank(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    encoded: Sequence[EncodedText],
    answers: Sequence[Fills],
    target_ids: IntArray,
    wanted: int,
) -> list[list[list[Fill]]]:
    """The fills of each mask of each text.

    Args:
        tokenizer: the model's.
        texts: as they were written.
        encoded: the same, as the model reads them.
        answers: the graph's, a text each.
        target_ids: (K,) the only tokens to rank; none for all ordinary ones.
        wanted: most fills a mask.
    """
    return [
        [
            _best(tokenizer, text, span, ids, log_probs, wanted)
            for span, ids, log_probs in zip(
                encoded_text.mask_spans, *_candidates(answer, target_ids), strict=True
            )
        ]
        for text, encoded_text, answer in zip(texts, encoded, answers, strict=True)
    ]


def _candidates(answer: Fills, target_ids: IntArray) -> tuple[list[list[int]], list[list[float]]]:
    """For each mask the ids that may fill it, best first, and their log-probabilities."""
    if not len(target_ids):
        return answer.top_ids.tolist(), answer.top_log_probs.tolist()
    log_probs_mK = answer.target_log_probs
    order_mK = np.argsort(-log_probs_mK, axis=1, kind="stable")
    ranked_mK = np.take_along_axis(log_probs_mK, order_mK, axis=1)
    return target_ids[order_mK].tolist(), ranked_mK.tolist()


def _best(
    tokenizer: Tokenizer,
    text: str,
    span: tuple[int, int],
    ids: list[int],
    log_probs: list[float],
    wanted: int,
) -> list[Fill]:
    blank = tokenizer.blank(text, span)
    fills: list[Fill] = []
    for token, log_prob in zip(ids, log_probs, strict=True):
        if token not in tokenizer.special_token_ids:
            token_str, sequence = blank.filled(token)
            fills.append(Fill(math.exp(log_prob), token, token_str, sequence))
            if len(fills) == wanted:
                break
    return fills
