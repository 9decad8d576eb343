"""Plan of a lease and its learning rate."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fillmask_model.training.lease.plan import LeasePlan, Progress, learning_rate
from tests.model.training.lease.samples import tiny_plan


def rates(plan: LeasePlan, total: float, **progress: Any) -> list[float]:
    """Return the rate of each step of a plan whose steps take a second each."""
    steps = range(int(total))
    return [
        learning_rate(plan, Progress(step=step, **progress), float(step), total) for step in steps
    ]


def test_the_rate_rises_stays_and_falls_to_zero() -> None:
    plan = tiny_plan(learning_rate=8.0, warmup_steps=4, decay_share=0.5)
    assert rates(plan, 16.0) == [2, 4, 6, 8, 8, 8, 8, 8, 8, 7, 6, 5, 4, 3, 2, 1]
    assert learning_rate(plan, Progress(step=99), 16.0, 16.0) == 0
    assert learning_rate(plan, Progress(step=99), 17.0, 16.0) == 0


def test_a_plan_without_a_rise_starts_at_the_peak() -> None:
    plan = tiny_plan(learning_rate=8.0, warmup_steps=0)
    assert rates(plan, 10.0)[0] == 8


def test_after_a_restart_the_rate_rises_again() -> None:
    plan = tiny_plan(learning_rate=8.0, rewarm_steps=2)
    progress = [Progress(step=step, warm_from=50) for step in (50, 51, 52)]
    assert [learning_rate(plan, each, 5.0, 100.0) for each in progress] == [4, 8, 8]


def test_time_in_later_steps_postpones_the_fall() -> None:
    # A second lease on another day makes the plan longer.
    plan = tiny_plan(learning_rate=8.0, decay_share=0.5)
    progress = Progress(step=99)
    assert learning_rate(plan, progress, 9.0, 12.0) == pytest.approx(4)
    assert learning_rate(plan, progress, 9.0, 24.0) == 8


def test_plan_and_progress_survive_json() -> None:
    plan = tiny_plan(short_lengths=(6, 10))
    assert LeasePlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    progress = Progress(step=3, tokens=9, seconds=1.5, loads=("load_1", "load_2"))
    assert Progress.from_dict(json.loads(json.dumps(progress.to_dict()))) == progress


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"packed_rows": 0}, r"packed_rows must be a whole number of at least 1 \(got 0\)"),
        ({"learning_rate": 0.0}, r"learning_rate must be a finite number above 0 \(got 0\.0\)"),
        ({"select_rate": 1.0}, r"select_rate must be below 1 \(got 1\.0\)"),
        ({"average_decay": 1.0}, r"average_decay must be below 1 \(got 1\.0\)"),
        ({"decay_share": 1.5}, r"decay_share must be at most 1 \(got 1\.5\)"),
        ({"short_lengths": ()}, r"short_lengths must be rising .* \(got \[\]\)"),
        ({"short_lengths": (16, 8)}, r"short_lengths must be rising .* \(got \[16, 8\]\)"),
        ({"short_lengths": (2, 8)}, r"rising whole numbers above 2 \(got \[2, 8\]\)"),
        ({"short_tokens": 15}, r"the longest short text, 16 \(got 15\)"),
        ({"row_tokens": 7}, r"row_tokens must be at least 8 \(got 7\)"),
        ({"result_bits": 12}, r"result_bits must be 8 or 16 \(got 12\)"),
    ],
)
def test_an_impossible_plan_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny_plan(**changes)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown: steps; known: average_decay, "):
        LeasePlan.from_dict({"steps": 4})
