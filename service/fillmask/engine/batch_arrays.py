"""Arrays of a batch, the inputs of the served graph.

Shape legend:
    N: texts
    T: tokens of one text
    R: tokens of all texts, packed end to end without padding
    B: attention rows (`RowPacking`)
    W: slots of one attention row
    Q: largest number of masks and pooled tokens in one attention row, at least MIN_QUERIES
    M: masks of all texts, ordered by text and position
    m: masks of one text
    C: pooled tokens of all texts, which the head reads, ordered by text and position
    c: pooled tokens of one text
    N': texts that the head reads
    K: targets of the mask with the most targets
    k: largest top_k of the passes
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from fillmask.arrays import IntArray, int_array
from fillmask.engine.passes import NO_POSITIONS, BatchOutputs, ModelPass, PassOutputs

# Number of float32 values in the widest vector register. Each text starts at a multiple of
# this number, so that vector instructions add its values in the same order as in a row of its own.
# The result then has the same bits. Row widths are also multiples of this number, because the
# attention kernels are slower for other widths (docs/decisions/004).
ALIGNMENT = 16
# The runtime's attention rounds differently for a row with only one query.
# With at least two queries, the result of a text does not depend on other masks in its row.
MIN_QUERIES = 2


@dataclass(frozen=True, slots=True)
class RowPacking:
    """Positions of texts in B rows of W slots, so that short texts share a row.

    Only attention needs a rectangular input. Its cost for a row grows with the square of the width.
    In a batch of one long text and many short texts, one padded row per text makes attention more
    expensive than the rest of the graph.

    Attributes:
        rows: index of the row of each text.
        offsets: first slot of each text in its row.
        count: number of rows, B.
        width: number of slots of each row, W. W is the length of the longest text, rounded
            up to a multiple of ALIGNMENT.
    """

    rows: tuple[int, ...]
    offsets: tuple[int, ...]
    count: int
    width: int

    @classmethod
    def first_fit(cls, lengths: Sequence[int]) -> "RowPacking":
        """Put each text, longest first, into the first row with enough free slots."""
        width = _aligned(max(lengths))
        free: list[int] = []  # first free aligned slot of each row
        rows, offsets = [0] * len(lengths), [0] * len(lengths)
        for text in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
            length = lengths[text]
            row = next((r for r, start in enumerate(free) if start + length <= width), len(free))
            if row == len(free):
                free.append(0)
            rows[text], offsets[text] = row, free[row]
            free[row] += _aligned(length)
        return cls(tuple(rows), tuple(offsets), len(free), width)


def _aligned(slots: int) -> int:
    return -(-slots // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Passes of one run of the served graph and the inputs of the graph, which are all int64.

    Attributes:
        passes: the passes, in the order of their texts in the arrays.
        input_ids: (R,) tokens of all texts, end to end.
        positions: (R,) position of each token in its text, from 0.
        pad_index: (B, W) index of the token in each slot (0 in unused slots).
        slot_texts: (B, W) index of the text in each slot (-1 in unused slots).
        unpad_index: (R,) flat slot b*W + w of each token.
        query_index: (B, Q) index of the q-th token of each row that a head reads, a mask or a
            pooled token (0 in unused entries).
        query_texts: (B, Q) index of the text of the same token (-1 in unused entries).
        mask_slots: (M,) flat entry b*Q + q of each mask.
        pooled_slots: (C,) flat entry b*Q + q of each pooled token.
        pooled_texts: (C,) index of each pooled token's text among the texts that the head reads.
        pooled_lengths: (N',) number of pooled tokens of each text that the head reads.
        top_k: (1,) the largest top_k of the passes.
        target_ids: (M, K) ids to score (0 in unused entries).
    """

    passes: tuple[ModelPass, ...]
    input_ids: IntArray
    positions: IntArray
    pad_index: IntArray
    slot_texts: IntArray
    unpad_index: IntArray
    query_index: IntArray
    query_texts: IntArray
    mask_slots: IntArray
    pooled_slots: IntArray
    pooled_texts: IntArray
    pooled_lengths: IntArray
    top_k: IntArray
    target_ids: IntArray

    @classmethod
    def pack(cls, passes: Sequence[ModelPass]) -> "Batch":
        """Pack one or more passes, each with at least one token."""
        lengths = [len(p.input_ids) for p in passes]
        packing = RowPacking.first_fit(lengths)
        rows, offsets = packing.rows, packing.offsets
        starts_N = int_array([0, *accumulate(lengths[:-1])])
        slots_N = int_array([row * packing.width + o for row, o in zip(rows, offsets, strict=True)])

        tokens_R = np.arange(sum(lengths))
        texts_R = np.arange(len(passes)).repeat(lengths)
        positions_R = tokens_R - starts_N[texts_R]
        unpad_index_R = positions_R + slots_N[texts_R]
        pad_index, slot_texts = _empty_grids(packing.count, packing.width)
        pad_index.ravel()[unpad_index_R] = tokens_R
        slot_texts.ravel()[unpad_index_R] = texts_R

        positions = [p.mask_positions for p in passes]
        texts = list(range(len(passes)))
        pooled_texts, pooled_lengths = NO_POSITIONS, NO_POSITIONS
        read = [text for text, p in enumerate(passes) if len(p.pooled_positions)]
        if read:  # after the masks of all texts
            pooled = [passes[text].pooled_positions for text in read]
            pooled_lengths = int_array(list(map(len, pooled)))
            pooled_texts = np.arange(len(read)).repeat(pooled_lengths)
            positions += pooled
            texts += read
        counts = list(map(len, positions))
        masks = sum(counts[: len(passes)])
        queries, most_queries = _query_slots([rows[text] for text in texts], counts, packing.count)
        read_texts = int_array(texts).repeat(counts)
        query_index, query_texts = _empty_grids(packing.count, most_queries)
        query_index.ravel()[queries] = starts_N[read_texts] + np.concatenate(positions)
        query_texts.ravel()[queries] = read_texts

        return cls(
            passes=tuple(passes),
            input_ids=np.concatenate([p.input_ids for p in passes]),
            positions=positions_R,
            pad_index=pad_index,
            slot_texts=slot_texts,
            unpad_index=unpad_index_R,
            query_index=query_index,
            query_texts=query_texts,
            mask_slots=queries[:masks],
            pooled_slots=queries[masks:],
            pooled_texts=pooled_texts,
            pooled_lengths=pooled_lengths,
            top_k=int_array([max(p.top_k for p in passes)]),
            target_ids=_stack_targets(passes, masks),
        )

    @property
    def tokens(self) -> int:
        return len(self.input_ids)

    @property
    def token_types(self) -> IntArray:
        """Token types (R,) of all texts. Only graphs with several token types have this input."""
        return np.concatenate(
            [
                np.zeros_like(p.input_ids) if p.token_types is None else p.token_types
                for p in self.passes
            ]
        )

    @property
    def slots(self) -> int:
        """Number of slots that attention computes, B * W, including padding."""
        return self.pad_index.size

    def unpack(self, outputs: BatchOutputs) -> list[PassOutputs]:
        """Return the outputs of each pass, in the order of `passes`."""
        unpacked = []
        start = 0
        heads = iter(outputs.pooled)
        if len(outputs.tokens):
            heads = iter(np.split(outputs.tokens, self.pooled_lengths.cumsum()[:-1]))
        for model_pass in self.passes:
            masks = slice(start, start + len(model_pass.mask_positions))
            targets = model_pass.target_ids.shape[1]
            pooled = next(heads) if len(model_pass.pooled_positions) else None
            if pooled is not None and model_pass.reduce is not None:
                pooled = model_pass.reduce(pooled)
            unpacked.append(
                PassOutputs(
                    outputs.top_ids[masks, : model_pass.top_k],
                    outputs.top_log_probs[masks, : model_pass.top_k],
                    outputs.target_log_probs[masks, :targets],
                    pooled,
                )
            )
            start = masks.stop
        return unpacked


def _empty_grids(rows: int, width: int) -> tuple[IntArray, IntArray]:
    """Return a grid of token indices and a grid of text indices, both without used entries."""
    shape = (rows, width)
    return np.zeros(shape, dtype=np.int64), np.full(shape, -1, dtype=np.int64)


def _query_slots(
    rows: Sequence[int], counts: Sequence[int], row_count: int
) -> tuple[IntArray, int]:
    """Return the flat entry b*Q + q of each token that a head reads, and Q.

    Args:
        rows: attention row of each group of tokens. Groups of one row follow each other in it.
        counts: number of tokens of each group.
    """
    used = [0] * row_count
    firsts, read = [], 0  # the first query of each group, less the tokens before the group
    for row, count in zip(rows, counts, strict=True):
        firsts.append(used[row] - read)
        used[row] += count
        read += count
    most_queries = max(MIN_QUERIES, *used)
    shifts = int_array([r * most_queries + q for r, q in zip(rows, firsts, strict=True)])
    return np.arange(read) + shifts.repeat(counts), most_queries


def _stack_targets(passes: Sequence[ModelPass], masks: int) -> IntArray:
    """Return the target ids of all masks, (M, K), padded with 0 on the right."""
    width = max(p.target_ids.shape[1] for p in passes)
    target_ids_MK = np.zeros((masks, width), dtype=np.int64)
    if not width:
        return target_ids_MK
    start = 0
    for model_pass in passes:
        count, own_width = model_pass.target_ids.shape
        target_ids_MK[start : start + count, :own_width] = model_pass.target_ids
        start += count
    return target_ids_MK
