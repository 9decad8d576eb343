"""Request, Batch and Fills: what the runtime computes, as arrays.

Shape legend: N texts; T tokens of the longest text; R tokens of all texts, packed end to end
without padding; Q masks of the text with the most; M masks of all texts, row-major by text and
position; K targets of the mask with the most; k = top_k. A lower-case m is one text's masks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
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


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
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
class Fills(Outputs):
    """The part of a batch's outputs that answers one request; M is that request's m."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The inputs of the served graph, all int64.

    Attributes:
        requests: what was packed, in this order.
        input_ids: (R,) tokens of all texts, end to end.
        positions: (R,) 0.. within each text.
        pad_index: (N, T) the row in 0..R-1 each padded slot takes; unused slots repeat row 0.
        unpad_index: (R,) the flat slot n*T + t of each row.
        lengths: (N,) tokens of each text.
        query_index: (N, Q) the row of each text's q-th mask; unused slots repeat row 0.
        mask_slots: (M,) the flat slot n*Q + q of each mask.
        top_k: (1,) the most any request asks for.
        target_ids: (M, K) ids to score; unused entries are 0.
    """

    requests: tuple[Request, ...]
    input_ids: IntArray
    positions: IntArray
    pad_index: IntArray
    unpad_index: IntArray
    lengths: IntArray
    query_index: IntArray
    mask_slots: IntArray
    top_k: IntArray
    target_ids: IntArray

    @classmethod
    def pack(cls, requests: Sequence[Request]) -> "Batch":
        """Lay the requests end to end; at least one, each with at least one token."""
        lengths_N = np.array([len(r.input_ids) for r in requests], dtype=np.int64)
        masks_N = np.array([len(r.mask_positions) for r in requests], dtype=np.int64)
        starts_N = np.cumsum(lengths_N) - lengths_N
        longest, most_masks = int(lengths_N.max()), int(masks_N.max())
        texts_N = np.arange(len(requests), dtype=np.int64)

        rows_R = np.arange(lengths_N.sum(), dtype=np.int64)
        positions_R = rows_R - np.repeat(starts_N, lengths_N)
        unpad_index_R = np.repeat(texts_N * longest, lengths_N) + positions_R
        pad_index = np.zeros(len(requests) * longest, dtype=np.int64)
        pad_index[unpad_index_R] = rows_R

        queries_M = np.arange(masks_N.sum(), dtype=np.int64)
        queries_M -= np.repeat(np.cumsum(masks_N) - masks_N, masks_N)
        mask_slots_M = np.repeat(texts_N * most_masks, masks_N) + queries_M
        query_index = np.zeros(len(requests) * most_masks, dtype=np.int64)
        mask_positions_M = np.concatenate([r.mask_positions for r in requests])
        query_index[mask_slots_M] = np.repeat(starts_N, masks_N) + mask_positions_M

        return cls(
            requests=tuple(requests),
            input_ids=np.concatenate([r.input_ids for r in requests]),
            positions=positions_R,
            pad_index=pad_index.reshape(len(requests), longest),
            unpad_index=unpad_index_R,
            lengths=lengths_N,
            query_index=query_index.reshape(len(requests), most_masks),
            mask_slots=mask_slots_M,
            top_k=np.array([max(r.top_k for r in requests)], dtype=np.int64),
            target_ids=_stack_targets(requests, len(queries_M)),
        )

    @property
    def tokens(self) -> int:
        """R, the tokens of all texts."""
        return len(self.input_ids)

    def split(self, outputs: Outputs) -> list[Fills]:
        """Each request's own part of the outputs, in the order of `requests`."""
        fills = []
        start = 0
        for request in self.requests:
            masks = slice(start, start + len(request.mask_positions))
            fills.append(
                Fills(
                    top_ids=outputs.top_ids[masks, : request.top_k],
                    top_log_probs=outputs.top_log_probs[masks, : request.top_k],
                    target_log_probs=outputs.target_log_probs[masks, : request.target_ids.shape[1]],
                )
            )
            start = masks.stop
        return fills


def _stack_targets(requests: Sequence[Request], masks: int) -> IntArray:
    """(M, K): the requests' target ids one under the other, padded with 0 on the right."""
    width = max(r.target_ids.shape[1] for r in requests)
    target_ids_MK = np.zeros((masks, width), dtype=np.int64)
    start = 0
    for request in requests:
        count, own_width = request.target_ids.shape
        target_ids_MK[start : start + count, :own_width] = request.target_ids
        start += count
    return target_ids_MK
