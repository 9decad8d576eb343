"""Optimizer step with fixed shapes, which a CUDA graph can contain as a whole.

A step masks its rows, computes loss and gradient of the packed rows and of the short texts, clips
the gradient, and updates weights and average. Nothing in it waits for the device: the rate of the
optimizer and the indices of the rows are tensors that the caller fills before the step, and the
loss adds up in a tensor that the caller reads now and then.

The step of an encoder with six layers has more than a thousand kernels, many of a few microseconds.
PyTorch starts those more slowly than a GPU computes them, so without graphs the GPU would wait. A
graph has fixed shapes, so there is one per length of short texts. `torch.compile` would also fuse
kernels, but needs a minute or more for all shapes, a tenth of the time in a short lease.

Shapes: B rows of a batch, K selected positions, E width of the table, V vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.training.lease.device_masks import DeviceMasker, FixedMasks
from fillmask_model.training.lease.device_rows import DeviceRows, RowGroup
from fillmask_model.training.lease.loads import PackFields
from fillmask_model.training.objectives.cross_entropy import summed_cross_entropy
from fillmask_model.training.weight_average import WeightAverage

ADAM_BETAS = (0.9, 0.98)  # the values of Liu et al. 2019, section 4, as in the training on CPUs
# positions per product with the vocabulary: 8,192 have logits of 1 GB in float32
POSITIONS_AT_ONCE = 8_192
# runs on the stream of the capture before it: they create the libraries' workspaces and handles
WARM_UP_RUNS = 2


class TrainingStep:
    """Weights, optimizer and inputs of the training on a device.

    Args:
        model: encoder to train, on the device.
        rows: rows on the device.
        autocast: function that returns the context of the forward pass.

    Attributes:
        average: exponential average of the weights.
        optimizer: AdamW, whose step and rate are on the device.
        rate: () float32, learning rate of the next step.
        loss_sum: () float32, sum of the mean losses of the steps since the caller set it to zero.
        norm: () float32, norm of the last gradient before clipping.
        generator: source of the masks, on the device.
    """

    def __init__(
        self,
        model: TiedEncoder,
        rows: DeviceRows,
        fields: PackFields,
        autocast: Callable[[], torch.autocast],
    ) -> None:
        device = model.embeddings.word.weight.device
        plan = fields.plan
        self.model, self._rows, self._autocast = model, rows, autocast
        self.average = WeightAverage(model, plan.average_decay)
        self._parameters = list(model.parameters())
        self._clip_norm = plan.clip_norm
        self.rate = torch.zeros((), device=device)
        groups: list[dict[str, Any]] = [
            {
                "params": [p for p in self._parameters if p.ndim > 1],
                "weight_decay": plan.weight_decay,
            },
            {"params": [p for p in self._parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
        on_gpu = device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            groups, lr=self.rate, betas=ADAM_BETAS, fused=True, capturable=on_gpu
        )
        self._share_rate()
        self.loss_sum = torch.zeros((), device=device)
        self.norm = torch.zeros((), device=device)
        self.generator = torch.Generator(device)
        self._masker = DeviceMasker(
            model.config.vocab_size, fields.mask, fields.special, self.generator
        )
        self._pad, self._seed = fields.pad, plan.seed
        self._indices = {
            length: torch.zeros(group.batch_rows, dtype=torch.int64, device=device)
            for length, group in rows.groups.items()
        }

    def prepare(self, number: int, rows_from: int) -> int:
        """Fill the inputs of a step, and return the length of its short texts or 0.

        Args:
            number: number of the step, from 0.
            rows_from: number of the step from which the rows are the same.
        """
        length = self._rows.length(number, rows_from)
        packed, short = self._rows.indices(number, rows_from)
        self._indices[0].copy_(packed)
        if short is not None:
            self._indices[length].copy_(short)
        # one seed per step, so that a resumed run draws the same masks
        self.generator.manual_seed(self._seed * 1_000_003 + number)
        return length

    def compute(self, length: int) -> None:
        """Train on the prepared rows.

        Args:
            length: length of the short texts that `prepare` has returned.
        """
        self.optimizer.zero_grad(set_to_none=True)
        groups = [self._rows.groups[each] for each in dict.fromkeys((0, length))]
        predicted = sum(group.selected for group in groups)
        for group, each in zip(groups, dict.fromkeys((0, length)), strict=True):
            # one divisor for both passes, so that every predicted token has the same weight
            loss = self.summed_loss(self.mask(group, self._indices[each]), padded=group.padded)
            loss = loss / predicted
            loss.backward()  # type: ignore[no-untyped-call]  # torch publishes no type for it
            self.loss_sum += loss.detach()
        self.norm.copy_(torch.nn.utils.clip_grad_norm_(self._parameters, self._clip_norm))
        self.optimizer.step()
        self.average.update()

    def tokens(self, length: int) -> float:
        """Return the mean number of tokens of a step by the length of its short texts."""
        return sum(self._rows.groups[each].tokens for each in dict.fromkeys((0, length)))

    def mask(self, group: RowGroup, indices_B: Tensor) -> FixedMasks:
        """Gather rows by index and mask them."""
        return self._masker(group.ids.index_select(0, indices_B).long(), group.selected)

    def summed_loss(self, masked: FixedMasks, *, padded: bool) -> Tensor:
        """Return the sum of the cross-entropy over the selected positions, in nats."""
        keep = masked.input_ids != self._pad if padded else None
        with self._autocast():
            hidden_KE = self.model.head(
                self.model.hidden(masked.input_ids, keep, selected=masked.positions)
            )
            table_VE, bias_V = self.model.output_projection(), self.model.head_bias
            parts = [
                summed_cross_entropy(hidden, table_VE, bias_V, labels)
                for hidden, labels in zip(
                    torch.split(hidden_KE, POSITIONS_AT_ONCE),
                    torch.split(masked.labels, POSITIONS_AT_ONCE),
                    strict=True,
                )
            ]
        return torch.stack(parts).sum()

    def load_optimizer(self, state: dict[str, Any]) -> None:
        """Restore the state of the optimizer, but keep the tensor of its rate."""
        self.optimizer.load_state_dict(state)
        self._share_rate()

    def _share_rate(self) -> None:
        """Give the optimizer the tensor that the caller fills and that graphs contain, no copy."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate


class StepRunner:
    """Runs a step by its shape: at first kernel by kernel, then as a CUDA graph.

    The first runs are steps of the training like all others. On a CPU, all runs are as the first.

    Args:
        compute: step for a shape. On a GPU it must not wait for the device.
        generator: source of the randomness in the step, on the device.
    """

    def __init__(self, compute: Callable[[int], None], generator: torch.Generator) -> None:
        self._compute, self._generator = compute, generator
        # the same stream for the first runs and for the capture, because autograd and cuBLAS
        # remember the stream on which they first ran
        self._stream: torch.cuda.Stream | None = None
        if generator.device.type == "cuda":
            self._stream = torch.cuda.Stream(generator.device)  # type: ignore[no-untyped-call]
        self._runs: Counter[int] = Counter()
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def run(self, shape: int) -> None:
        """Run the step for a shape. On a GPU the step may still be running afterwards."""
        if self._stream is None:
            self._compute(shape)
            return
        if shape not in self._graphs and self._runs[shape] < WARM_UP_RUNS:
            self._runs[shape] += 1
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                self._compute(shape)
            torch.cuda.current_stream().wait_stream(self._stream)
            return
        if shape not in self._graphs:
            self._graphs[shape] = self._capture(shape)
        self._graphs[shape].replay()

    def _capture(self, shape: int) -> torch.cuda.CUDAGraph:
        """Record the step for a shape without running it."""
        graph = torch.cuda.CUDAGraph()
        # a graph reads seed and offset of a registered generator at each replay
        graph.register_generator_state(self._generator)
        # Graphs that never run at the same time can share memory, as no tensor of a graph's own
        # memory is read after its replay.
        others = next(iter(self._graphs.values()), None)
        pool = None if others is None else others.pool()
        with torch.cuda.graph(graph, pool=pool, stream=self._stream):
            self._compute(shape)
        return graph
