"""Ranking of tokens and targets as fills, best first.

Special tokens are never fills.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fillmask.engine.passes import PassOutputs
from fillmask.tasks.fill_mask.results import NO_SINGLE_TOKEN, Fill, TargetFill
from fillmask.tasks.fill_mask.targets import Targets
from fillmask.tokenization.detokenizer import MaskSlot
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer


def rank_targets(
    tokenizer: Tokenizer,
    text: str,
    encoded: EncodedText,
    targets: Targets,
    log_probs_mK: NDArray[np.float64],
    top_k: int,
) -> list[list[TargetFill]]:
    """Return the best targets for each mask of a text.

    Args:
        log_probs_mK: (m, K) log-probability of each target at each mask, in nats.
    """
    ranked = []
    for mask, log_probs_K in enumerate(log_probs_mK):
        slot = tokenizer.mask_slot(text, encoded, mask)
        total = np.logaddexp.reduce(log_probs_K)
        fills = []
        tokens = targets.tokens(glued=slot.glued).ids
        for index in np.argsort(-log_probs_K, kind="stable")[:top_k].tolist():
            ids, log_prob = tokens[index], float(log_probs_K[index])
            token = ids[0] if len(ids) == 1 else NO_SINGLE_TOKEN
            shown = slot.fill_with(tokenizer.target_text(targets.texts[index], ids))
            fills.append(
                TargetFill(
                    math.exp(log_prob),
                    token,
                    *shown,
                    log_prob=log_prob,
                    target_score=math.exp(log_prob - total),
                    tokens=ids,
                )
            )
        ranked.append(fills)
    return ranked


def rank_tokens(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    encoded: Sequence[EncodedText],
    outputs: Sequence[PassOutputs],
    top_k: int,
) -> list[list[list[Fill]]]:
    """Return the best ordinary tokens for each mask of each text."""
    return [
        [
            _rank_mask(tokenizer, tokenizer.mask_slot(text, encoded_text, mask), *row, top_k)
            for mask, row in enumerate(
                zip(output.top_ids.tolist(), output.top_log_probs.tolist(), strict=True)
            )
        ]
        for text, encoded_text, output in zip(texts, encoded, outputs, strict=True)
    ]


def _rank_mask(
    tokenizer: Tokenizer, slot: MaskSlot, ids: list[int], log_probs: list[float], top_k: int
) -> list[Fill]:
    fills: list[Fill] = []
    for token, log_prob in zip(ids, log_probs, strict=True):
        if token not in tokenizer.special_token_ids:
            token_str, sequence = slot.fill(token)
            fills.append(Fill(math.exp(log_prob), token, token_str, sequence))
            if len(fills) == top_k:
                break
    return fills
