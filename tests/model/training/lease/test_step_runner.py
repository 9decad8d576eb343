"""Order of first runs, captures and replays, with a stand-in for CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fillmask_model.training.lease.training_step import StepRunner


class FakeCuda:
    """Stand-in for the parts of torch.cuda that the runner uses, which keeps a record."""

    def __init__(self) -> None:
        self.record: list[Any] = []
        self.capturing: Any = None
        self.streams = 0

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cuda = self

        class Graph:
            def __init__(self) -> None:
                self.steps: list[int] = []
                self.generators: list[Any] = []

            def register_generator_state(self, generator: Any) -> None:
                self.generators.append(generator)

            def pool(self) -> str:
                return "pool"

            def replay(self) -> None:
                cuda.record += [("replay", step) for step in self.steps]

        class Stream:
            def __init__(self, *_: Any) -> None:
                cuda.streams += 1

            def wait_stream(self, _: Any) -> None:
                cuda.record.append("wait")

        @contextmanager
        def stream(_: Stream) -> Iterator[None]:
            cuda.record.append("side stream")
            yield

        @contextmanager
        def graph(captured: Graph, *, pool: Any, stream: Stream) -> Iterator[None]:
            assert captured.generators, "registered before the capture"
            cuda.record.append(("capture", pool))
            cuda.capturing = captured
            yield
            cuda.capturing = None

        main = Stream()
        for name, value in {
            "CUDAGraph": Graph,
            "Stream": Stream,
            "stream": stream,
            "graph": graph,
            "current_stream": lambda: main,
        }.items():
            monkeypatch.setattr(torch.cuda, name, value)

    def compute(self, shape: int) -> None:
        if self.capturing is not None:
            self.capturing.steps.append(shape)
        else:
            self.record.append(("run", shape))


def test_a_shape_runs_twice_before_its_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each call runs the step once: a capture alone runs nothing, so a replay follows it.
    cuda = FakeCuda()
    cuda.patch(monkeypatch)
    generator: Any = SimpleNamespace(device=torch.device("cuda"))
    runner = StepRunner(cuda.compute, generator)
    for shape in (8, 8, 8, 8, 16, 8, 16, 16):
        runner.run(shape)
    first = ["wait", "side stream", ("run", 8), "wait"]
    other = ["wait", "side stream", ("run", 16), "wait"]
    assert cuda.record == [
        *first,
        *first,
        ("capture", None),
        ("replay", 8),
        ("replay", 8),
        *other,
        ("replay", 8),
        *other,
        ("capture", "pool"),
        ("replay", 16),
    ]
    assert cuda.streams == 2  # the current stream, and one for first runs and captures


def test_a_cpu_runs_the_step_itself() -> None:
    seen: list[int] = []
    runner = StepRunner(seen.append, torch.Generator())
    for _ in range(4):
        runner.run(8)
    assert seen == [8, 8, 8, 8]
