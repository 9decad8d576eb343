"""From the graph's ids and log-probabilities to fills: ordinary tokens, best first, as text."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.engine.batch import PassOutputs
from service.tasks.results import NO_SINGLE_TOKEN, Fill, TargetFill
from service.tasks.targets import Targets
from service.tokenization.tokenizer import EncodedText, Tokenizer


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
        blank = tokenizer.mask_slot(text, span)
        total = np.logaddexp.reduce(log_probs_K)
        fills = []
        for index in np.argsort(-log_probs_K, kind="stable")[:wanted].tolist():
            ids, log_prob = targets.token_ids[index], float(log_probs_K[index])
            token_str, sequence = blank.fill_with(tokenizer.target_text(targets.texts[index], ids))
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
    answers: Sequence[PassOutputs],
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
    blank = tokenizer.mask_slot(text, span)
    fills: list[Fill] = []
    for token, log_prob in zip(ids, log_probs, strict=True):
        if token not in tokenizer.special_token_ids:
            token_str, sequence = blank.fill(token)
            fills.append(Fill(math.exp(log_prob), token, token_str, sequence))
            if len(fills) == wanted:
                break
    return fills
