"""What the runtimes have in common.

Shapes: N texts, T tokens of the longest text, M masks of all texts, V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison.contenders.contender import Job
from fillmask.arrays import FloatArray
from fillmask.tokenization.encoded_text import EncodedText

INDICATOR = "mask_indicator"


class Engine(Protocol):
    """Runtime with a loaded graph."""

    def logits(self, texts: Sequence[EncodedText]) -> FloatArray:
        """Compute the logits (M, V) at the masks of texts, in order.

        Several threads may call the method concurrently.
        """


def padded_inputs(
    texts: Sequence[EncodedText], *, indicator: bool
) -> dict[str, NDArray[np.int64] | FloatArray]:
    """Create the inputs of a graph with padded rows.

    Args:
        texts: one or more texts.
        indicator: whether the graph computes logits only at the masks, which its input
            `mask_indicator` marks.
    """
    shape = (len(texts), max(len(text.input_ids) for text in texts))
    input_ids = np.zeros(shape, np.int64)
    attention_mask = np.zeros(shape, np.int64)
    mask_indicator = np.zeros(shape, np.float32)
    for row, text in enumerate(texts):
        input_ids[row, : len(text.input_ids)] = text.input_ids
        attention_mask[row, : len(text.input_ids)] = 1
        mask_indicator[row, text.mask_positions] = 1
    inputs: dict[str, NDArray[np.int64] | FloatArray] = {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
    }
    return inputs | {INDICATOR: mask_indicator} if indicator else inputs


def at_masks(values_NTV: FloatArray, texts: Sequence[EncodedText]) -> FloatArray:
    """Return the rows (M, V) of an array (N, T, V) at the masks of texts, in order."""
    rows_M = np.repeat(np.arange(len(texts)), [len(text.mask_positions) for text in texts])
    columns_M = np.concatenate([text.mask_positions for text in texts])
    values_MV: FloatArray = values_NTV[rows_M, columns_M]
    return values_MV


def grouped(
    engine: Engine, texts: Sequence[EncodedText], texts_per_run: int, *, by_length: bool = False
) -> list[Job]:
    """Return the runs that compute all texts.

    Args:
        engine: runtime, which does not rank the tokens.
        texts: tokenized texts.
        texts_per_run: number of texts per run.
        by_length: whether the texts of a run have similar lengths, which reduces padding.
            Otherwise they run in order of arrival.
    """
    if by_length:
        texts = sorted(texts, key=lambda text: len(text.input_ids))
    starts = range(0, len(texts), texts_per_run)
    groups = [texts[start : start + texts_per_run] for start in starts]
    return [(len(group), partial(engine.logits, group)) for group in groups]
