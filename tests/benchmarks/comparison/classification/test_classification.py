"""Contenders, correctness check and table of the benchmark of /classify."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from benchmarks import generated_block
from benchmarks.comparison.classification.__main__ import COLUMNS, NAME, PAGE, page_block
from benchmarks.comparison.classification.http_comparison import (
    PIPELINE,
    check,
    contenders,
    describe_choice,
)
from benchmarks.comparison.http.contenders import OURS_FP32, OURS_INT8, Contender
from benchmarks.comparison.process import ServerError
from benchmarks.comparison.results import Cell, Visit

REFERENCE = [{"a": 0.7, "b": 0.3}, {"a": 0.4, "b": 0.6}]
FIRST = [{"label": "a", "score": 0.7}, {"label": "b", "score": 0.3}]
SECOND = [{"label": "b", "score": 0.6}, {"label": "a", "score": 0.4}]


def _contender(name: str) -> Contender:
    return next(contender for contender in contenders(2) if contender.name == name)


def _visit(requests_per_s: float, agreement: float = 1) -> Visit:
    cell = Cell(
        requests=10, requests_per_s=requests_per_s, p50_ms=2.5, p99_ms=7.5, client_cpu_us=20
    )
    return Visit(ready_s=0.5, peak_rss_bytes=100_000_000, agreement=agreement, cells={8: cell})


def test_each_contender_starts_a_module_that_exists() -> None:
    known = contenders(2)
    assert [contender.name for contender in known] == [OURS_INT8, OURS_FP32, PIPELINE]
    for contender in known:
        assert contender.command[1] == "-m"
        assert find_spec(contender.command[2]) is not None
    assert [setting.arguments for setting in _contender(PIPELINE).settings] == [
        ("--runs", "1", "--threads", "2"),
        ("--runs", "2", "--threads", "1"),
    ]


def test_responses_with_and_without_an_outer_list_agree() -> None:
    # For one text, fillmask returns a list of one list, and the pipeline returns one list.
    for name in (OURS_FP32, PIPELINE):
        assert check(_contender(name), REFERENCE, [[FIRST], SECOND]) == 1


def test_scores_in_fp32_must_agree_and_int8_gives_a_share() -> None:
    wrong = [{"label": "b", "score": 0.52}, {"label": "a", "score": 0.48}]
    with pytest.raises(ServerError, match=r"text 0 must differ .* at most 0.0001 \(got 0.22\)"):
        check(_contender(PIPELINE), REFERENCE, [wrong, SECOND])
    assert check(_contender(OURS_INT8), REFERENCE, [wrong, SECOND]) == 0.5


def test_a_missing_label_stops_the_comparison() -> None:
    with pytest.raises(ServerError, match=r"text 1 must have the labels a, b \(got b\)"):
        check(_contender(OURS_INT8), REFERENCE, [FIRST, SECOND[:1]])


def test_table_has_medians_and_ratios_of_single_rounds() -> None:
    visits = {
        OURS_INT8: [_visit(600), _visit(300), _visit(500)],
        PIPELINE: [_visit(60), _visit(50), _visit(50, agreement=0.5)],
    }
    lines = page_block(visits, "1 run with 2 threads", ["memory: 8 GiB"]).splitlines()
    assert lines[0].strip("| ").split(" | ") == ["contender", *COLUMNS]
    assert lines[2] == f"| {OURS_INT8} | 500.0 | 2.5 / 7.5 | 1.00x | 60 % | 100 | 100.0 % |"
    assert lines[3] == f"| {PIPELINE} | 50.0 | 2.5 / 7.5 | 10.00x | 20 % | 100 | 100.0 % |"
    assert lines[-2:] == [f"- {PIPELINE}: 1 run with 2 threads", "- memory: 8 GiB"]


def test_page_has_a_place_for_the_table() -> None:
    assert generated_block.read(PAGE, NAME)


def test_a_trial_names_the_speed_of_every_setting() -> None:
    one, two = _contender(PIPELINE).settings
    assert describe_choice(two, {one: 15.9, two: 23.72}) == (
        "2 concurrent runs with 1 thread each. In a trial with 8 clients this configuration "
        "reaches 23.7 requests/s. The configuration with 1 run with 2 threads reaches 15.9 "
        "requests/s"
    )
    assert describe_choice(one, {}) == "1 run with 2 threads"
