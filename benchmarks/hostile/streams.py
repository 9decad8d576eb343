"""Polite clients of a service beside hostile byte streams, kind by kind.

    .venv-dev/bin/python -m benchmarks.hostile.streams --seed S --kinds K --seconds T

Hostile clients of one kind keep 8 connections busy and reconnect at full speed, in a process of
their own. Two polite clients with an API key and the liveness probes are another process. With
--connections N, each kind is a flood of N connections that ends before the polite clients end. The
script prints one line per kind and fails if a kind fails a bar of `outcome.Outcome`.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from benchmarks.hostile.clients import flooded, named_kind
from benchmarks.hostile.kinds import NAMED
from benchmarks.hostile.outcome import LIMIT_BYTES, Outcome, percentile_ms
from benchmarks.hostile.polite_clients import LIVE, Client, polite
from fillmask.settings import Settings
from tests.chaos.cgroup import memory_group, unavailable
from tests.chaos.memory import forget_peak, peak_bytes
from tests.chaos.process import free_port, serving

CONNECTIONS = 8
FLOOD_CONNECTIONS = 1_000
AFTER_FLOOD_S = 6.0
LONGEST_S = 60.0  # ends the hostile clients of a script that was killed


class Service(NamedTuple):
    """Running service.

    Attributes:
        metrics_port: separate port for liveness, or 0 for none.
        key: valid API key.
    """

    process: asyncio.subprocess.Process
    port: int
    metrics_port: int
    key: str


@asynccontextmanager
async def limited_service() -> AsyncIterator[Service]:
    """Run the service with an API key and, if this machine can limit it, the memory of a pod."""
    key = secrets.token_hex()
    metrics_port = free_port() if "metrics_port" in Settings.model_fields else 0
    with tempfile.TemporaryDirectory() as directory:
        keys = Path(directory) / "keys"
        keys.write_text(key)
        flags = ["--log-level=error", f"--api-keys-file={keys}"]
        if metrics_port:
            flags.append(f"--metrics-port={metrics_port}")
        limit = nullcontext() if unavailable() else memory_group("fillmask-hostile", LIMIT_BYTES)
        with limit as group:
            on_start = None if group is None else group.add
            async with serving(*flags, on_start=on_start) as (process, port):
                yield Service(process, port, metrics_port, key)


async def attack(service: Service, name: str, seconds: float, connections: int) -> Outcome:
    """Run the hostile clients of a kind beside the polite clients.

    Args:
        seconds: duration of the attack.
        connections: number of hostile connections. The polite clients ask on after a flood of more
            than 8 connections.
    """
    # the answer comes after the work that the kind before has left
    await Client("live", service.port, LIVE, keep_alive=False).ask()
    pid, flood_end_s, opened = service.process.pid, None, 0
    forget_peak(pid)
    is_flood = connections > CONNECTIONS
    asking_s = seconds + (AFTER_FLOOD_S if is_flood else 0)
    asking = asyncio.create_task(polite(service.port, service.metrics_port, asking_s, service.key))
    # without a flood, the attack lasts until the polite clients have their last answers
    attack_s = seconds if is_flood else seconds + LONGEST_S
    async with flooded(service.port, connections, attack_s, name) as hostile:
        if is_flood:
            printed, _ = await hostile.communicate()
            flood_end_s, opened = time.monotonic(), int(printed)
        asked = await asking
        if not is_flood and hostile.returncode is not None:
            raise RuntimeError(f"the hostile clients have ended early under {name}")
    await asyncio.sleep(0.1)  # in which an end of the process becomes known
    killed = service.process.returncode is not None
    peak = 0 if killed else peak_bytes(pid)
    return Outcome(named_kind(name).name, asked, opened, peak, killed, flood_end_s)


async def attack_in_turn(names: Sequence[str], seconds: float, connections: int) -> list[Outcome]:
    """Attack with one kind after the other and print a line for each.

    Args:
        names: names as in `named_kind`.
    """
    outcomes: list[Outcome] = []
    while len(outcomes) < len(names):  # a service that ends is started again
        async with limited_service() as service:
            while len(outcomes) < len(names) and service.process.returncode is None:
                name = names[len(outcomes)]
                outcome = await attack(service, name, seconds, connections)
                outcomes.append(outcome)
                print(f"{name}: {outcome.line()}; {outcome.name}", flush=True)
                for failure in outcome.failures():
                    print(f"    FAILED: {failure}", flush=True)
    return outcomes


def _print_summary(names: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    pairs = list(zip(names, outcomes, strict=True))
    failed = [name for name, outcome in pairs if outcome.failures()]
    print(f"{len(outcomes)} kinds, {len(failed)} failed: {', '.join(failed) or 'none'}")
    for title, unit, value in (
        ("slowest p99 of fills", "ms", lambda one: percentile_ms(one.fills, 0.99)),
        ("slowest liveness", "ms", lambda one: percentile_ms(one.probes, 1)),
        ("most memory", "MB", lambda one: one.peak_bytes / 1e6),
    ):
        worst = sorted(pairs, key=lambda pair: value(pair[1]), reverse=True)[:5]
        print(f"{title}: {', '.join(f'{name} {value(one):.0f} {unit}' for name, one in worst)}")


def main() -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    today = int(f"{datetime.now(UTC):%Y%m%d}")
    parser.add_argument("--seed", type=int, default=today, help="seed (default: the date)")
    parser.add_argument("--kinds", type=int, default=20, help="number of kinds of the seed")
    parser.add_argument(
        "--only", nargs="+", metavar="KIND", help=f"SEED:INDEX or one of: {', '.join(NAMED)}"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of each kind")
    parser.add_argument(
        "--connections", type=int, nargs="?", default=CONNECTIONS, const=FLOOD_CONNECTIONS
    )
    options = parser.parse_args()
    names = options.only or [f"{options.seed}:{index}" for index in range(options.kinds)]
    outcomes = asyncio.run(attack_in_turn(names, options.seconds, options.connections))
    _print_summary(names, outcomes)
    return 1 if any(outcome.failures() for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
