"""Request, Batch and Fills: what the runtime computes, as arrays.

Shape legend: N texts; T tokens of a text; R tokens of all texts, packed end to end without padding;
B rows of W slots in which attention sees them (`packing`); Q masks of the row with the most,
at least 2; M masks of all texts, by text and position; K targets of the mask with the most; k =
top_k. A lower-case m is one text's masks.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

from service.arrays import FloatArray, IntArray
from service.engine.packing import RowPacking

# With one query a row, the runtime's attention goes another way, whose last bits differ: what a
# text is answered would depend on the masks of those that share its row.
LEAST_QUERIES = 2


@dataclass(frozen=True, slots=True, eq=False)
class ModelPass:
    """One text to fill.

    Attributes:
        input_ids: (T,) int64, special tokens included.
        mask_positions: (m,) int64, ascending positions in input_ids.
        top_k: how many ids to return for each mask, at least 1.
        target_ids: (m, K) int64, ids whose log-probability is asked for; K may be 0.
    """

    input_ids: IntArray
    mask_positions: IntArray
    top_k: int
    target_ids: IntArray

    @property
    def tokens(self) -> int:
        """What the request costs: its length in tokens."""
        return len(self.input_ids)


def no_targets(masks: int) -> IntArray:
    """(m, 0): what a request without targets has as its target_ids."""
    return np.empty((masks, 0), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class BatchOutputs:
    """What the served graph returns for a batch.

    Attributes:
        top_ids: (M, k) int64, by descending log-probability.
        top_log_probs: (M, k) float32.
        target_log_probs: (M, K) float32.
    """

    top_ids: IntArray
    top_log_probs: FloatArray
    target_log_probs: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PassOutputs(BatchOutputs):
    """The part of a batch's outputs that answers one request; M is that request's m."""


# has requests computed, and gives their answers in the same order
Submit = Callable[[Sequence[ModelPass]], Awaitable[Sequence[PassOutputs]]]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The inputs of the served graph, all int64.

    Attributes:
        requests: what was packed, in this order.
        input_ids: (R,) tokens of all texts, end to end.
        positions: (R,) 0.. within each text.
        pad_index: (B, W) which of the R tokens each slot takes; unused slots take the first.
        slot_texts: (B, W) the text each slot belongs to, counted from 0; -1 where it is unused.
        unpad_index: (R,) the flat slot b*W + w of each token.
        query_index: (B, Q) the token of each row's q-th mask; unused entries are 0.
        query_texts: (B, Q) the text it belongs to; -1 where it is unused.
        mask_slots: (M,) the flat entry b*Q + q of each mask.
        top_k: (1,) the most any request asks for.
        target_ids: (M, K) ids to score; unused entries are 0.
    """

    requests: tuple[ModelPass, ...]
    input_ids: IntArray
    positions: IntArray
    pad_index: IntArray
    slot_texts: IntArray
    unpad_index: IntArray
    query_index: IntArray
    query_texts: IntArray
    mask_slots: IntArray
    top_k: IntArray
    target_ids: IntArray

    @classmethod
    def pack(cls, requests: Sequence[ModelPass]) -> "Batch":
        """Lay the requests end to end; at least one, each with at least one token."""
        lengths = [len(r.input_ids) for r in requests]
        bins = RowPacking.of(lengths)
        lengths_N, rows_N, offsets_N = map(_ints, (lengths, bins.rows, bins.offsets))
        masks_N = _ints([len(r.mask_positions) for r in requests])
        starts_N = np.cumsum(lengths_N) - lengths_N
        texts_N = np.arange(len(requests))

        tokens_R = np.arange(lengths_N.sum())
        positions_R = tokens_R - np.repeat(starts_N, lengths_N)
        unpad_index_R = np.repeat(rows_N * bins.width + offsets_N, lengths_N) + positions_R
        pad_index, slot_texts = _rectangles(bins.count, bins.width)
        pad_index.ravel()[unpad_index_R] = tokens_R
        slot_texts.ravel()[unpad_index_R] = np.repeat(texts_N, lengths_N)

        rows_M = np.repeat(rows_N, masks_N)
        queries_M = _places(rows_M, bins.count)
        most_masks = max(LEAST_QUERIES, int(queries_M.max()) + 1)
        mask_slots_M = rows_M * most_masks + queries_M
        query_index, query_texts = _rectangles(bins.count, most_masks)
        mask_positions_M = np.concatenate([r.mask_positions for r in requests])
        query_index.ravel()[mask_slots_M] = np.repeat(starts_N, masks_N) + mask_positions_M
        query_texts.ravel()[mask_slots_M] = np.repeat(texts_N, masks_N)

        return cls(
            requests=tuple(requests),
            input_ids=np.concatenate([r.input_ids for r in requests]),
            positions=positions_R,
            pad_index=pad_index,
            slot_texts=slot_texts,
            unpad_index=unpad_index_R,
            query_index=query_index,
            query_texts=query_texts,
            mask_slots=mask_slots_M,
            top_k=_ints([max(r.top_k for r in requests)]),
            target_ids=_stack_targets(requests, len(rows_M)),
        )

    @property
    def tokens(self) -> int:
        """R, the tokens of all texts."""
        return len(self.input_ids)

    @property
    def slots(self) -> int:
        """B * W, what attention computes; those without a token are padding."""
        return self.pad_index.size

    def split(self, outputs: BatchOutputs) -> list[PassOutputs]:
        """Each request's own part of the outputs, in the order of `requests`."""
        fills = []
        start = 0
        for request in self.requests:
            masks = slice(start, start + len(request.mask_positions))
            fills.append(
                PassOutputs(
                    top_ids=outputs.top_ids[masks, : request.top_k],
                    top_log_probs=outputs.top_log_probs[masks, : request.top_k],
                    target_log_probs=outputs.target_log_probs[masks, : request.target_ids.shape[1]],
                )
            )
            start = masks.stop
        return fills


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _rectangles(rows: int, width: int) -> tuple[IntArray, IntArray]:
    """Indices and texts of a rectangle in which nothing is used yet."""
    shape = (rows, width)
    return np.zeros(shape, dtype=np.int64), np.full(shape, -1, dtype=np.int64)


def _places(rows_M: IntArray, rows: int) -> IntArray:
    """(M,): of each mask, how many before it lie in the same row."""
    places = np.empty(len(rows_M), dtype=np.int64)
    order = np.argsort(rows_M, kind="stable")
    counts = np.bincount(rows_M, minlength=rows)
    places[order] = np.arange(len(rows_M)) - np.repeat(np.cumsum(counts) - counts, counts)
    return places


def _stack_targets(requests: Sequence[ModelPass], masks: int) -> IntArray:
    """(M, K): the requests' target ids one under the other, padded with 0 on the right."""
    width = max(r.target_ids.shape[1] for r in requests)
    target_ids_MK = np.zeros((masks, width), dtype=np.int64)
    start = 0
    for request in requests:
        count, own_width = request.target_ids.shape
        target_ids_MK[start : start + count, :own_width] = request.target_ids
        start += count
    return target_ids_MK
