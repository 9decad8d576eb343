"""Time per operator, from the events of a profile."""

from __future__ import annotations

from typing import Any

from benchmarks.comparison.in_process.operator_times import by_operator


def _event(operator: str, us: int, *, kind: str = "_kernel_time") -> dict[str, Any]:
    return {"cat": "Node", "name": f"n{kind}", "args": {"op_name": operator}, "dur": us}


def test_kernels_are_added_up_and_loops_left_out() -> None:
    # A loop's event includes the time of its kernels, which have events of their own.
    events = [
        {"cat": "Session", "name": "model_run", "dur": 900},
        _event("Add", 10),
        _event("Gemm", 30),
        _event("Add", 30),
        _event("Add", 7, kind="_fence_before"),
        _event("Loop", 70),
    ]
    assert list(by_operator(events, texts=2).items()) == [("Add", 20), ("Gemm", 15)]
