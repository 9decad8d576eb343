"""CUDA graphs of a step: the GPU starts a thousand kernels without the CPU between them.

The step of an encoder with six layers has more than a thousand kernels, many of a few microseconds.
PyTorch starts those more slowly than a GPU computes them, so without graphs the GPU would wait. A
graph has fixed shapes, so there is one per length of short texts.

`torch.compile` would also fuse kernels, but needs a minute or more for all shapes, a tenth of the
time in a short lease.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch

# runs on the stream of the capture before it: they create the libraries' workspaces and handles
WARM_UP_RUNS = 2


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
