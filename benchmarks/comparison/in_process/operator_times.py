"""Time of the served graph by operator on one thread.

    python -m benchmarks.comparison.in_process.operator_times SIZE SECONDS

The script prints microseconds per text by operator as JSON. The script uses the texts and batches
of the in-process comparison.
"""

from __future__ import annotations

import collections
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import onnxruntime as ort

from benchmarks.comparison.in_process.throughput import LIMIT_S, our_batches
from benchmarks.comparison.process import output_of
from benchmarks.comparison.texts import masked_texts
from benchmarks.comparison.workspace import Workspace
from fillmask.engine.runtime import Runtime

# excluded operator, because its time includes the operators inside the loop
CONTAINER = "Loop"


def measure(size: str, cpus: Sequence[int], seconds: float) -> dict[str, float]:
    """Measure the int8 bundle in a separate process on the first CPU.

    Returns:
        Microseconds per text by operator in descending order.
    """
    arguments = [size, str(seconds)]
    printed = output_of(
        "benchmarks.comparison.in_process.operator_times", arguments, cpus[:1], LIMIT_S
    )
    times: dict[str, float] = json.loads(printed)
    return times


def operator_times(size: str, seconds: float) -> dict[str, float]:
    """Return microseconds per text by operator in descending order."""
    workspace = Workspace(size)
    tokenizer = workspace.tokenizer()
    batches = our_batches(workspace, [tokenizer.encode(text) for text in masked_texts()])
    texts = 0
    with tempfile.TemporaryDirectory() as scratch:
        runtime = _profiled_runtime(workspace, Path(scratch))
        ends_s = time.perf_counter() + seconds
        while texts == 0 or time.perf_counter() < ends_s:
            for batch in batches:
                runtime.run(batch)
                texts += len(batch.passes)
        events = json.loads(Path(runtime._session.end_profiling()).read_text())  # noqa: SLF001 - only benchmarks need profiles
    return by_operator(events, texts)


def by_operator(events: Iterable[dict[str, Any]], texts: int) -> dict[str, float]:
    """Sum the events of a profile to microseconds per text by operator in descending order."""
    total_us: collections.Counter[str] = collections.Counter()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            total_us[event["args"]["op_name"]] += event["dur"]
    return {
        operator: us / texts for operator, us in total_us.most_common() if operator != CONTAINER
    }


def _profiled_runtime(workspace: Workspace, directory: Path) -> Runtime:
    """Create the service's runtime with profiling."""

    class Profiled(ort.SessionOptions):  # type: ignore[misc]  # onnxruntime is untyped
        def __init__(self) -> None:
            super().__init__()
            self.enable_profiling = True
            self.profile_file_prefix = str(directory / "profile")

    with mock.patch("fillmask.engine.runtime.ort.SessionOptions", Profiled):
        return Runtime(workspace.bundle("int8") / "model.onnx")


def main() -> None:
    """Print the times of one model size."""
    size, seconds = sys.argv[1:]
    print(json.dumps(operator_times(size, float(seconds))))


if __name__ == "__main__":
    main()
