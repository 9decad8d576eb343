"""Figures from the output of wrk."""

from __future__ import annotations

import json

import pytest

from benchmarks.comparison.http.load import parse
from benchmarks.comparison.process import ServerError

RESULT = {
    "requests": 400,
    "duration_us": 2_000_000,
    "p50_us": 4_500,
    "p99_us": 9_000,
    **dict.fromkeys(("bad_status", "connect", "read", "write", "timeout"), 0),
}


def _output(**changes: int) -> str:
    return f"Running 2s test\n  Requests/sec: 1\n\nresult {json.dumps(RESULT | changes)}\n"


def test_units_are_seconds_milliseconds_and_microseconds() -> None:
    # wrk reports latencies in microseconds.
    # 0.1 s of CPU time for 400 requests is 250 us per request.
    cell = parse(_output(), cpu_s=0.1)
    assert (cell.requests, cell.requests_per_s) == (400, 200)
    assert (cell.p50_ms, cell.p99_ms) == (4.5, 9)
    assert cell.client_cpu_us == pytest.approx(250)


@pytest.mark.parametrize("kind", ["bad_status", "connect", "read", "write", "timeout"])
def test_a_single_error_stops_the_comparison(kind: str) -> None:
    with pytest.raises(ServerError, match=f"'{kind}': 1"):
        parse(_output(**{kind: 1}), cpu_s=0.1)


def test_nothing_answered_or_no_result_stops_the_comparison() -> None:
    # The error message contains wrk's output.
    with pytest.raises(ServerError, match="got 0 responses"):
        parse(_output(requests=0), cpu_s=0.1)
    with pytest.raises(ServerError, match="unable to connect"):
        parse("unable to connect to 127.0.0.1", cpu_s=0.1)
