"""Means, intervals and table of a comparison."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fillmask_model.classification.comparison.results import (
    Mean,
    RunResult,
    format_table,
    half_width,
    summarise,
)

RUNS = [
    RunResult("pretrained", 200, 0, (0.5, 0.8)),
    RunResult("pretrained", 200, 1, (0.6, 0.9)),
    RunResult("from_scratch", 200, 0, (0.9, 0.25)),
    RunResult("majority", 1000, 0, (0.25,)),
]


def test_intervals_follow_students_distribution() -> None:
    values = [0.81, 0.84, 0.79]
    found = Mean.of(values)
    low, high = stats.t.interval(
        0.95, df=2, loc=np.mean(values), scale=np.std(values, ddof=1) / np.sqrt(3)
    )
    assert (found.mean, found.low, found.high) == pytest.approx((0.8133333, low, high))
    # the quantile of three values is 4.303, in any table of the distribution
    assert half_width(np.array(values)[:, None])[0] == pytest.approx(
        4.3027 * np.std(values, ddof=1) / np.sqrt(3), rel=1e-4
    )
    assert Mean.of([0.5]) == Mean(0.5, None, None)


def test_the_accuracy_is_that_of_the_last_epoch() -> None:
    assert [run.accuracy for run in RUNS] == [0.8, 0.9, 0.25, 0.25]
    summary = summarise(RUNS)
    assert [(row["size"], row["method"], row["seeds"]) for row in summary] == [
        (200, "from_scratch", 1),
        (200, "pretrained", 2),
        (1000, "majority", 1),
    ]
    assert summary[1]["mean"] == pytest.approx(0.85)


def test_the_table_has_a_row_per_size() -> None:
    assert format_table(RUNS[:3]).splitlines() == [
        "| training rows | from scratch | pre-trained |",
        "| ---: | --- | --- |",
        "| 200 | 0.250 | 0.850 (0.215 to 1.485) |",
    ]


def test_results_survive_json() -> None:
    assert RunResult.from_dict(RUNS[0].to_dict()) == RUNS[0]
    assert RUNS[0].name == "pretrained-200-0.json"
