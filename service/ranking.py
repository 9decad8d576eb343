"""From the graph's ids and log-probabilities to fills: ordinary tokens, best first, as text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.engine.batch import Fills
from service.targets import Targets
from service.tokenization.tokenizer import EncodedText, Tokenizer

NO_SINGLE_TOKEN = -1  # what clients that want a number get as the token of several


@dataclass(slots=True)  # not frozen: that would make each cost three times as much to create
class Fill:
    """One proposal for one mask.

    Attributes:
        score: probability over the whole vocabulary.
        token: its id.
        token_str: the token as text.
        sequence: the user's text with this mask filled.
        window: the part of the text that the model saw, first character and the one after the
            last; None for all of it.
    """

    score: float
    token: int
    token_str: str
    sequence: str
    window: tuple[int, int] | None = None


@dataclass(slots=True, kw_only=True)
class TargetFill(Fill):
    """One target for one mask.

    Attributes:
        log_prob: of the target as a whole, in nats; its exponential is the score.
        target_score: probability among the targets alone.
        tokens: the target's; `token` is that of a single one, and -1 where there are several.
    """

    log_prob: float
    target_score: float
    tokens: tuple[int, ...]


def rank_targets(
    tokenizer: Tokenizer,
    text: str,
    encoded: EncodedText,
    targets: Targets,
    log_probs_mK: NDArray[np.float64],
    wanted: int,
) -> list[list[TargetFill]]:
    """The best targets for each mask of a text.

    Args:
        tokenizer: the model's.
        text: as it was written.
        encoded: the same, as the model reads it.
        targets: those to rank.
        log_probs_mK: of each at each mask.
        wanted: most fills a mask.
    """
    answer = []
    for span, log_probs_K in zip(encoded.mask_spans, log_probs_mK, strict=True):
        blank = tokenizer.blank(text, span)
        total = np.logaddexp.reduce(log_probs_K)
        fills = []
        for index in np.argsort(-log_probs_K, kind="stable")[:wanted].tolist():
            ids, log_prob = targets.token_ids[index], float(log_probs_K[index])
            token_str, sequence = blank.filled_with(tokenizer.phrase(targets.texts[index], ids))
            fills.append(
                TargetFill(
                    score=math.exp(log_prob),
                    token=ids[0] if len(ids) == 1 else NO_SINGLE_TOKEN,
                    token_str=token_str,
                    sequence=sequence,
                    log_prob=log_prob,
                    target_score=math.exp(log_prob - total),
                    tokens=ids,
                )
            )
        answer.append(fills)
    return answer


def rank(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    encoded: Sequence[EncodedText],
    answers: Sequence[Fills],
    wanted: int,
) -> list[list[list[Fill]]]:
    """The best ordinary tokens for each mask of each text.

    Args:
        tokenizer: the model's.
        texts: as they were written.
        encoded: the same, as the model reads them.
        answers: the graph's, a text each.
        wanted: most fills a mask.
    """
    return [
        [
            _best(tokenizer, text, span, ids, log_probs, wanted)
            for span, ids, log_probs in zip(
                encoded_text.mask_spans,
                answer.top_ids.tolist(),
                answer.top_log_probs.tolist(),
                strict=True,
            )
        ]
        for text, encoded_text, answer in zip(texts, encoded, answers, strict=True)
    ]


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
