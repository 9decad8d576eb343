"""Attacks on a process with 512 MiB, the memory limit of the documented pod."""

import asyncio
import os

import pytest

from tests.chaos.attacks import ATTACKS, under
from tests.chaos.cgroup import memory_group, unavailable
from tests.chaos.load import asking
from tests.chaos.process import serving
from tests.service.server_process import SERVE

LIMIT_BYTES = 512 * 2**20
ATTACK_S = 5.0
CLIENTS = 8
# longer during other tests, which also use the CPUs
SLOWEST_S = 5.0

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
]


async def test_other_clients_are_answered_beside_all_attacks_on_memory() -> None:
    # without floods, which take whatever time of the event loop they can get (test_memory.py)
    names = [name for name in ATTACKS if not name.endswith("floods")]
    # `make attack-check` sets 60 s
    alone_s = float(os.environ.get("ATTACK_S", "0"))
    with memory_group("fillmask-attacks", LIMIT_BYTES) as group:
        code = f"{group.join}\n{SERVE}"
        with serving("--log-level=error", code=code) as (_, port), under(names, port):
            async with asking(port, CLIENTS, pause_s=0.05) as outcome:
                await asyncio.sleep(alone_s or ATTACK_S)
                sockets = group.socket_bytes
        oom_kills, peak_bytes = group.oom_kills, group.peak_bytes
    p50_ms, p99_ms = (outcome.percentile_s(share) * 1000 for share in (0.5, 0.99))
    print(  # noqa: T201 - figures for the person who runs `make attack-check`
        f"\nanswers {dict(outcome.statuses)}, lost {outcome.lost}, refused {outcome.refused}; "
        f"p50 {p50_ms:.0f} ms, p99 {p99_ms:.0f} ms; peak of the group {peak_bytes / 2**20:.0f} MiB;"
        f" sockets in the kernel {sockets} bytes"
    )
    assert oom_kills == 0
    assert set(outcome.statuses) == {200}
    assert outcome.lost == outcome.refused == 0
    assert outcome.percentile_s(0.99) < (1.0 if alone_s else SLOWEST_S)
    assert peak_bytes <= LIMIT_BYTES
