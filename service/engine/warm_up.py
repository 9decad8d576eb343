"""Run batches before there are callers: for memory to be laid out, and for the speed."""

import time
from collections.abc import Callable

import numpy as np

from service.engine.batch import Batch, BatchOutputs, ModelPass
from service.errors import BundleError

# longer texts are rare, and one of 8,192 tokens would hold up every start by half a minute
LONGEST_TOKENS = 1024
# a sentence
_USUAL_TOKENS = 32


def warm_up(
    run: Callable[[Batch], BatchOutputs],
    token_id: int,
    max_tokens: int,
    max_batch_tokens: int,
    max_masks: int,
    top_k: int,
) -> tuple[int, float]:
    """Fill a batch to its budget with texts of the greatest length, up to 1,024 tokens, and run it.

    Then one of sentences, as a queue of them is computed.

    Args:
        run: computes a batch.
        token_id: what the texts are made of.
        max_tokens: length of a text.
        max_batch_tokens: tokens of the batch, if one text has not more.
        max_masks: masks of the batch.
        top_k: ids asked for at each mask.

    Returns:
        Tokens of the batch of sentences, and the seconds that it took.

    Raises:
        BundleError: the graph fails on it.
    """
    length = min(max_tokens, LONGEST_TOKENS)
    texts = max(1, max_batch_tokens // length)
    masks = min(length, max(1, max_masks // texts))
    try:
        run(Batch.pack([_request(token_id, length, masks, top_k)] * texts))
        length = min(max_tokens, _USUAL_TOKENS)
        texts, masks = max(1, max_batch_tokens // length), 1
        started_s = time.perf_counter()
        run(Batch.pack([_request(token_id, length, masks, min(top_k, 5))] * texts))
        return texts * length, time.perf_counter() - started_s
    except Exception as error:  # onnxruntime's exceptions have no public base class
        raise BundleError(
            f"The bundle does not work on this machine: the model fails on {texts} texts of "
            f"{length} tokens with {masks} masks each."
        ) from error


def _request(token_id: int, tokens: int, masks: int, top_k: int) -> ModelPass:
    return ModelPass(
        input_ids=np.full(tokens, token_id, dtype=np.int64),
        mask_positions=np.arange(masks, dtype=np.int64),
        top_k=top_k,
        target_ids=np.zeros((masks, 1), dtype=np.int64),
    )
