"""Warm-up of a model, which runs two batches to allocate memory and measure the throughput."""

import time
from collections.abc import Callable

import numpy as np

from fillmask.bundles.description import Pooling
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs, ModelPass
from fillmask.errors import BundleError

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
    pooling: Pooling | None = None,
    *,
    fills: bool = True,
) -> tuple[int, float]:
    """Run a batch of texts of up to MAX_WARM_UP_TOKENS tokens and a batch of sentences.

    Args:
        token_id: id of every token in the texts.
        max_masks: maximum number of masks in the first batch, as `top_k` is for its ids.
        pooling: pooling of the classification head. None for a model without labels.
        fills: whether the model fills masks. Without fills, the batches have no masks.

    Returns:
        The tokens of the batch of sentences, and its seconds times its threads.

    Raises:
        BundleError: the graph fails on a batch.
    """
    length = min(max_tokens, MAX_WARM_UP_TOKENS)
    texts = max(1, max_batch_tokens // length)
    masks = min(length, max(1, max_masks // texts)) if fills else 0
    try:
        run(_batch(token_id, texts, length, masks, top_k, pooling))
        length = min(max_tokens, _TYPICAL_TOKENS)
        texts, masks = max(1, max_batch_tokens // length), int(fills)
        batch = _batch(token_id, texts, length, masks, min(top_k, 5), pooling)
        started_s = time.perf_counter()
        threads = run(batch).threads
        return texts * length, (time.perf_counter() - started_s) * threads
    except Exception as error:  # onnxruntime's exceptions have no public base class
        raise BundleError(
            "The bundle does not work on this machine: the model fails on a test batch (texts: "
            f"{texts}, tokens per text: {length}, masks per text: {masks}); export the bundle "
            "again."
        ) from error


def _batch(
    token_id: int, texts: int, tokens: int, masks: int, top_k: int, pooling: Pooling | None
) -> Batch:
    """Return a batch of equal texts. For a model of both tasks, every second text has masks."""
    input_ids = np.full(tokens, token_id, dtype=np.int64)
    positions = np.arange(masks, dtype=np.int64)
    passes = [ModelPass(input_ids, positions, top_k, np.zeros((masks, 1), dtype=np.int64))]
    if pooling is not None:
        labels = ModelPass.for_head(input_ids, None, pooling)
        passes = [*passes, labels] if masks else [labels]
    return Batch.pack([passes[text % len(passes)] for text in range(texts)])
