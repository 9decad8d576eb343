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


def sum_gradients(parameters: Iterable[nn.Parameter], processes: Processes) -> None:
    """Replace the gradient of each parameter by its sum over all processes.

    A parameter that no loss of a step uses has no gradient, so that the optimizer leaves the
    parameter unchanged, as in a run with one process.
    """
    if processes.count == 1:
        return
    trained = list(parameters)
    uses = torch.tensor([p.grad is not None for p in trained], dtype=torch.int32)
    uses = uses.to(trained[0].device)
    dist.all_reduce(uses)
    for parameter, used in zip(trained, uses.tolist(), strict=True):
        if used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
