"""Processes of a data-parallel training run, as started by torchrun.

Every process has a copy of the encoder and computes the gradient of its rows of each batch. The sum
of the gradients over all processes is the gradient of the whole batch (Li et al. 2020, "PyTorch
Distributed", section 2). The number of processes therefore changes a run only by rounding.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

Value = TypeVar("Value")
# longer than the evaluation and the tokenization by one process, for which the other processes wait
TIMEOUT = dt.timedelta(hours=6)
_TURNS = 3


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a run. The default is a run with one process.

    Attributes:
        rank: index of this process. Process 0 writes all files.
        count: number of processes.
        local_rank: index of this process among the processes of its machine.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0

    @classmethod
    @contextmanager
    def join(cls, device: str) -> Iterator[Processes]:
        """Join the other processes within the `with` block if torchrun has started this process.

        Args:
            device: "cpu" for gloo, or "cuda" for nccl with one device per process.
        """
        count = int(os.environ.get("WORLD_SIZE", "1"))
        if count == 1:
            yield cls()
            return
        rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
        if device == "cuda":
            torch.cuda.set_device(local_rank)
        dist.init_process_group("nccl" if device == "cuda" else "gloo", timeout=TIMEOUT)
        try:
            yield cls(rank, count, local_rank)
        finally:
            dist.destroy_process_group()

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def part(self, rows: int) -> slice:
        """Return the rows of a batch that belong to this process.

        The parts of all processes contain each row once. Their sizes differ by at most one row.
        """
        return slice(self.rank * rows // self.count, (self.rank + 1) * rows // self.count)

    def in_turn(self, action: Callable[[], Value]) -> Value:
        """Call a function in process 0, then in one process per other machine, then in the rest.

        Later processes thus find the files of earlier ones on a shared or local disk.
        """
        turn = 0 if self.is_first else 1 if self.local_rank == 0 else 2
        for current in range(_TURNS):
            if current == turn:
                value = action()
            if self.count > 1:
                dist.barrier()
        return value

    def from_first(self, value: Value) -> Value:
        if self.count == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def copy_from_first(self, tensors: Iterable[Tensor]) -> None:
        if self.count > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def sum(self, number: float, device: torch.device) -> float:
        """Return the sum of a number over all processes."""
        if self.count == 1:
            return number
        total = torch.tensor(number, dtype=torch.float64, device=device)
        dist.all_reduce(total)
        return float(total)


class Gradients:
    """Gradients of an encoder, of which one call sums all over the processes of the run.

    A parameter that no loss of a step uses has no gradient, so that the optimizer leaves the
    parameter unchanged, as in a run with one process.
    """

    def __init__(self, model: nn.Module, processes: Processes) -> None:
        self._parameters = list(model.parameters())
        self._flat: Tensor | None = None
        if processes.count > 1:
            sizes = [parameter.numel() for parameter in self._parameters]
            # the last values count the processes that use each parameter
            self._flat = torch.zeros(sum(sizes) + len(sizes), device=self._parameters[0].device)
            *self._parts, self._uses = torch.split(self._flat, [*sizes, len(sizes)])

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def sum(self) -> None:
        """Replace each gradient by its sum over all processes."""
        if self._flat is None:
            return
        self._flat.zero_()
        for number, (parameter, part) in enumerate(zip(self._parameters, self._parts, strict=True)):
            if parameter.grad is not None:
                part.copy_(parameter.grad.flatten())
                self._uses[number] = 1
        dist.all_reduce(self._flat)
        used = self._uses.tolist()
        for uses, parameter, part in zip(used, self._parameters, self._parts, strict=True):
            parameter.grad = part.view_as(parameter) if uses else None
