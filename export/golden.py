"""Golden prompts: texts with the answers a bundle must give wherever it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from service.batch import Batch, Request
from service.runtime import Runtime
from service.tokenizer import Tokenizer

PROMPTS = 4
FILLS = 3
# nats; what the order of another CPU's sums may change, in int8 by tipping a value over a step
LOG_PROB_TOLERANCES = {"fp32": 2e-3, "int8": 2e-2}
CLEAR_GAP = 3  # tolerances between the last fill and the next, so that they cannot change places


def golden_prompts(
    texts: Sequence[str], runtime: Runtime, tokenizer: Tokenizer, max_tokens: int, precision: str
) -> dict[str, Any]:
    """The `golden` part of bundle.json.

    Args:
        texts: plain sentences; in each the middle word becomes the mask. Those whose best fills
            are too close to call are passed over.
        runtime: the bundle's graph.
        tokenizer: the bundle's tokenizer.
        max_tokens: longest input.
        precision: "fp32" or "int8".

    Raises:
        ValueError: no text gives a clear answer.
    """
    tolerance = LOG_PROB_TOLERANCES[precision]
    prompts: list[dict[str, Any]] = []
    for text in texts:
        words = text.split()
        words[len(words) // 2] = tokenizer.mask_token
        prompt = " ".join(words)
        fills = _clear_fills(prompt, runtime, tokenizer, max_tokens, CLEAR_GAP * tolerance)
        if fills:
            prompts.append({"text": prompt, "fills": [fills]})
        if len(prompts) == PROMPTS:
            break
    if not prompts:
        raise ValueError("no verification text gives a clear answer; name others with --texts")
    return {"log_prob_tolerance": tolerance, "prompts": prompts}


def _clear_fills(
    prompt: str, runtime: Runtime, tokenizer: Tokenizer, max_tokens: int, gap: float
) -> list[dict[str, Any]]:
    encoded = tokenizer.encode(prompt)
    if len(encoded.mask_positions) != 1 or len(encoded.input_ids) > max_tokens:
        return []
    offered = FILLS + 1 + len(tokenizer.special_token_ids)
    no_targets = np.zeros((1, 0), np.int64)
    request = Request(encoded.input_ids, encoded.mask_positions, offered, no_targets)
    outputs = runtime.run(Batch.pack([request]))
    ranked = [
        (token, log_prob)
        for token, log_prob in zip(
            outputs.top_ids[0].tolist(), outputs.top_log_probs[0].tolist(), strict=True
        )
        if token not in tokenizer.special_token_ids
    ][: FILLS + 1]
    # as many as are clearly ahead of the next one
    count = next(
        (n for n in range(len(ranked) - 1, 0, -1) if ranked[n - 1][1] - ranked[n][1] >= gap), 0
    )
    return [{"token": token, "log_prob": round(value, 5)} for token, value in ranked[:count]]
