"""Polite clients of the service beside hostile byte streams, about 20 s."""

import sys
from datetime import UTC, datetime

import pytest

from benchmarks.hostile.clients import named_kind
from benchmarks.hostile.kinds import NAMED
from benchmarks.hostile.outcome import Outcome
from benchmarks.hostile.polite_clients import LOST, Asked
from benchmarks.hostile.streams import CONNECTIONS, attack_in_turn

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read in /proc"),
]

KINDS = 12
ATTACK_S = 0.8
# kinds that have failed: chunks that h11 parsed without a pause, and connections that are reset
SEEDS_THAT_FAILED = ("1-byte chunks", "CRLFCRLF chunks", "7:34", "7:37")
# longer than the 1 s of the benchmark, because other tests also use the CPUs
SLOWEST_S = 5.0


@pytest.mark.slow
async def test_polite_clients_are_answered() -> None:
    # The kinds differ from day to day. A failure names them by seed and index.
    seed = f"{datetime.now(UTC):%Y%m%d}"
    names = [*SEEDS_THAT_FAILED, *(f"{seed}:{index}" for index in range(KINDS))]
    outcomes = await attack_in_turn(names, ATTACK_S, CONNECTIONS)
    pairs = zip(names, outcomes, strict=True)
    failures = {name: one.failures(slowest_s=SLOWEST_S) for name, one in pairs}
    assert {name: found for name, found in failures.items() if found} == {}


def test_kinds_depend_only_on_the_seed_and_index() -> None:
    assert named_kind("1:2") == named_kind("1:2") != named_kind("1:3")
    assert len({named_kind(f"1:{index}").name for index in range(300)}) > 250
    assert named_kind(next(iter(NAMED))) in NAMED.values()


def test_lost_and_late_requests_fail_the_bars() -> None:
    served = [
        Asked(client, float(i), 0.01, 200)
        for client in ("keep-alive", "new", "live")
        for i in range(9)
    ]
    assert Outcome("", served, 0, 0, killed=False).failures() == []
    lost = [*served, Asked("new", 9.0, 0.01, LOST)]
    late = [*served, Asked("live", 9.0, 1.5, 200)]
    for asked in (lost, late):
        assert len(Outcome("", asked, 0, 0, killed=False).failures()) == 1
    assert len(Outcome("", served, 0, 0, killed=False, flood_end_s=5.0).failures()) == 0
    assert len(Outcome("", served, 0, 0, killed=False, flood_end_s=8.5).failures()) == 1
