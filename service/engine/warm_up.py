"""Warm-up of a model with two batches, which allocate memory and measure the throughput."""

import time
from collections.abc import Callable

import numpy as np

from service.engine.batch_arrays import Batch
from service.engine.passes import BatchOutputs, ModelPass
from service.errors import BundleError

# Longer texts are rare. A warm-up with a text of 8,192 tokens delays the start by half a minute.
MAX_WARM_UP_TOKENS = 1024
# tokens of a typical sentence
_TYPICAL_TOKENS = 32


def warm_up(
    run: Callable[[Batch], BatchOutputs],
    token_id: int,
    max_tokens: int,
    max_batch_tokens: int,
    max_masks: int,
    top_k: int,
) -> tuple[int, float]:
    """Run a batch of the longest texts, up to 1,024 tokens each, and a batch of sentences.

    Args:
        run: function that computes a batch.
        token_id: id of every token in the texts.
        max_tokens: maximum length of a text in tokens.
        max_batch_tokens: token budget of a batch. A longer text forms a batch alone.
        max_masks: maximum number of masks in the first batch.
        top_k: number of ids to return for each mask.

    Returns:
        The number of tokens in the batch of sentences, and the seconds of this batch.

    Raises:
        BundleError: the graph fails on a batch.
    """
    length = min(max_tokens, MAX_WARM_UP_TOKENS)
    texts = max(1, max_batch_tokens // length)
    masks = min(length, max(1, max_masks // texts))
    try:
        run(Batch.pack([_model_pass(token_id, length, masks, top_k)] * texts))
        length = min(max_tokens, _TYPICAL_TOKENS)
        texts, masks = max(1, max_batch_tokens // length), 1
        started_s = time.perf_counter()
        run(Batch.pack([_model_pass(token_id, length, masks, min(top_k, 5))] * texts))
        return texts * length, time.perf_counter() - started_s
    except Exception as error:  # onnxruntime's exceptions have no public base class
        raise BundleError(
            f"The bundle does not work on this machine: the model fails on {texts} texts of "
            f"{length} tokens with {masks} masks each; export the bundle again."
        ) from error


def _model_pass(token_id: int, tokens: int, masks: int, top_k: int) -> ModelPass:
    return ModelPass(
        input_ids=np.full(tokens, token_id, dtype=np.int64),
        mask_positions=np.arange(masks, dtype=np.int64),
        top_k=top_k,
        target_ids=np.zeros((masks, 1), dtype=np.int64),
    )
