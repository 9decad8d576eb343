"""Run the largest batch once, so that no caller waits for memory to be laid out."""

from collections.abc import Callable

import numpy as np

from service.batch import Batch, Outputs, Request
from service.errors import BundleError

# longer texts are rare, and one of 8,192 tokens would hold up every start by half a minute
LONGEST_TOKENS = 1024


def warm_up(
    run: Callable[[Batch], Outputs],
    token_id: int,
    max_tokens: int,
    max_batch_tokens: int,
    max_masks: int,
    top_k: int,
) -> None:
    """Fill a batch to its budget with texts of the greatest length, up to 1,024 tokens, and run it.

    Args:
        run: computes a batch.
        token_id: what the texts are made of.
        max_tokens: length of a text.
        max_batch_tokens: tokens of the batch, if one text has not more.
        max_masks: masks of the batch.
        top_k: ids asked for at each mask.

    Raises:
        BundleError: the graph fails on it.
    """
    length = min(max_tokens, LONGEST_TOKENS)
    texts = max(1, max_batch_tokens // length)
    masks = min(length, max(1, max_masks // texts))
    request = Request(
        input_ids=np.full(length, token_id, dtype=np.int64),
        mask_positions=np.arange(masks, dtype=np.int64),
        top_k=top_k,
        target_ids=np.zeros((masks, 1), dtype=np.int64),
    )
    try:
        run(Batch.pack([request] * texts))
    except Exception as error:  # onnxruntime's exceptions have no public base class
        raise BundleError(
            f"The bundle does not work on this machine: the model fails on {texts} texts of "
            f"{length} tokens with {masks} masks each."
        ) from error
