"""Training rows in the memory of the device, and their order.

The rows stay on the device as integers of two bytes. A batch is a gather by index there, so a step
moves nothing from the CPU to the GPU. Which rows a step reads depends only on the rows, the seed
and the number of the step.

Shapes: R rows, T tokens, B rows of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask_model.training.lease.loads import PACKED, SHORT, PackFields, Rows

_SCHEDULE = 1  # distinguishes the generators of the order of lengths and of the order of rows


@dataclass(frozen=True, slots=True, eq=False)
class RowGroup:
    """Rows of one shape on the device.

    Attributes:
        ids: (R, T) tokens, int16 for vocabularies up to 32,768 and otherwise int32, because PyTorch
            has few operations on uint16.
        batch_rows: number B of rows in a batch.
        selected: number of positions to predict in a batch.
        tokens: mean number of tokens in a batch without padding.
        padded: whether the rows have padding.
    """

    ids: Tensor
    batch_rows: int
    selected: int
    tokens: float
    padded: bool

    @property
    def batches(self) -> int:
        """Number of whole batches in an epoch."""
        return len(self.ids) // self.batch_rows


class DeviceRows:
    """Packed rows and short texts of all loads on a device.

    Short texts are padded to the next length of the plan.

    Args:
        loads: training rows of each load by name.

    Attributes:
        groups: rows by the length of a row, packed rows by the length 0.

    Raises:
        ValueError: the packed rows do not fill a batch, or no length has a batch of short texts.
    """

    def __init__(self, loads: Iterable[Rows], fields: PackFields, device: torch.device) -> None:
        plan, every = fields.plan, list(loads)
        self._seed, self._fields, self._device = plan.seed, fields, device
        packed = np.concatenate([rows[PACKED] for rows in every])
        if len(packed) < plan.packed_rows:
            raise ValueError(
                f"the packed rows must fill a batch of {plan.packed_rows} (got {len(packed)} "
                "rows); add text or reduce packed_rows of the plan"
            )
        self.groups = {0: self._group(packed, plan.packed_rows)}
        shorter = 0
        for length in plan.short_lengths if plan.short_tokens else ():
            texts = _padded(every, shorter, length, fields.pad)
            batch_rows = plan.short_tokens // length
            shorter = length
            if len(texts) >= batch_rows:
                self.groups[length] = self._group(texts, batch_rows)
        if plan.short_tokens and len(self.groups) == 1:
            raise ValueError(
                f"the short texts must fill a batch of {plan.short_tokens} tokens of one length; "
                "add text or reduce short_tokens of the plan"
            )
        lengths = [length for length in self.groups if length]
        counts = [self.groups[length].batches for length in lengths]
        self._lengths = np.repeat(lengths, counts)
        self._orders: dict[int, tuple[tuple[int, int], Tensor]] = {}

    def length(self, number: int, rows_from: int) -> int:
        """Return the length of the short texts of a step, or 0 for a step without short texts.

        Args:
            number: number of the step, from 0.
            rows_from: number of the step from which the rows are the same.
        """
        if not len(self._lengths):
            return 0
        return int(self._place(number - rows_from, rows_from)[0])

    def indices(self, number: int, rows_from: int) -> tuple[Tensor, Tensor | None]:
        """Return the indices of the packed rows and of the short texts of a step, on the device."""
        since = number - rows_from
        packed = self._batch(0, *divmod(since, self.groups[0].batches), rows_from)
        if not len(self._lengths):
            return packed, None
        length, index = self._place(since, rows_from)
        return packed, self._batch(length, since // len(self._lengths), index, rows_from)

    def _place(self, since: int, rows_from: int) -> tuple[int, int]:
        """Return the length of a step's short texts, and the number of their batch in its epoch."""
        epoch, index = divmod(since, len(self._lengths))
        generator = np.random.default_rng([self._seed, rows_from, epoch, _SCHEDULE])
        lengths = self._lengths[generator.permutation(len(self._lengths))]
        return int(lengths[index]), int((lengths[:index] == lengths[index]).sum())

    def _batch(self, length: int, epoch: int, index: int, rows_from: int) -> Tensor:
        group, key = self.groups[length], (epoch, rows_from)
        if length not in self._orders or self._orders[length][0] != key:
            generator = np.random.default_rng([self._seed, rows_from, epoch, 0, length])
            order = torch.from_numpy(generator.permutation(len(group.ids)))
            self._orders[length] = (key, order.to(self._device))
        order_R = self._orders[length][1]
        return order_R[index * group.batch_rows : (index + 1) * group.batch_rows]

    def _group(self, rows: NDArray[np.uint16], batch_rows: int) -> RowGroup:
        """Upload rows, after a check that even the poorest batch has enough tokens to predict."""
        ordinary_R = (~np.isin(rows, self._fields.special)).sum(axis=1)
        selected = max(1, round(self._fields.plan.select_rate * ordinary_R.mean() * batch_rows))
        fewest = int(np.sort(ordinary_R)[:batch_rows].sum())
        if fewest < selected:
            raise ValueError(
                f"every batch of {batch_rows} rows of {rows.shape[1]} tokens must have at least "
                f"{selected} ordinary tokens (got {fewest} in the poorest rows); reduce "
                "select_rate of the plan or add lengths to short_lengths"
            )
        real = rows != self._fields.pad
        small = self._fields.encoder.vocab_size <= 1 << 15
        uploaded = torch.from_numpy(rows.astype(np.int16 if small else np.int32))
        tokens = float(real.sum(axis=1).mean() * batch_rows)
        return RowGroup(
            uploaded.to(self._device), batch_rows, selected, tokens, not bool(real.all())
        )


def _padded(loads: list[Rows], shorter: int, length: int, pad: int) -> NDArray[np.uint16]:
    """Return the short texts of more than `shorter` and at most `length` tokens, padded."""
    parts = [np.empty((0, length), np.uint16)]
    for rows in loads:
        for name, texts in rows.items():
            if name.startswith(SHORT) and shorter < texts.shape[1] <= length:
                missing = length - texts.shape[1]
                parts.append(np.pad(texts, ((0, 0), (0, missing)), constant_values=pad))
    return np.concatenate(parts)
