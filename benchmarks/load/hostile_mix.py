"""A random mix of attacks on one process: does it answer, and does its memory stay flat?

    .venv-dev/bin/python -m benchmarks.load.hostile_mix [--minutes N] [--seed N]

Every 10 s another few attacks begin, beside two polite clients, and now and then the bundle changes
and is reloaded. A line tells of memory and answers; the end fails if the process has died, a polite
client was not answered, or memory has grown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.load.attacks import ATTACKS, under
from service.bundles.bundle import default_bundle_path
from tests.chaos.load import Outcome, ask_until
from tests.chaos.memory import MB, deleted_maps, resident_bytes
from tests.chaos.process import serving

PERIOD_S = 10.0
CLIENTS = 2
MOST_ATTACKS = 4
WARM_SHARE = 0.25  # of the time: what a process takes until it has seen everything
RELOADED_SHARE = 0.3  # of the periods
# of the median of the last quarter over that after warming up
ALLOWED_GROWTH_MB = 40
# requests in a hundred that may be told to come again
ALLOWED_REFUSALS = 0.01


async def mix(minutes: float, seed: int, bundle: Path) -> int:
    """Run it, and return the exit code."""
    draw = random.Random(seed)  # noqa: S311 - a choice, not a secret
    samples: list[int] = []
    answered = refused = lost = 0
    reloads = 0
    async with serving("--log-level=error", f"--bundle={bundle}") as (process, port):
        began_s = time.monotonic()
        while (now_s := time.monotonic() - began_s) < minutes * 60:
            if draw.random() < RELOADED_SHARE:
                reloads += 1
                _change(bundle, reloads)
                process.send_signal(signal.SIGHUP)
            names = draw.sample(list(ATTACKS), draw.randint(1, MOST_ATTACKS))
            outcome = await _period(port, names, draw.randrange(2**31))
            if process.returncode is not None:
                print(f"the process has ended with {process.returncode} under {names}")
                return 1
            samples.append(resident_bytes(process.pid))
            answered += outcome.statuses[200]
            refused += outcome.statuses[429]
            others = sum(outcome.statuses.values()) - outcome.statuses[200] - outcome.statuses[429]
            lost += others + outcome.lost + outcome.refused
            print(
                f"{now_s:6.0f} s {samples[-1] / MB:6.1f} MB, {dict(outcome.statuses)}, lost "
                f"{outcome.lost}, p99 {outcome.percentile_s(0.99) * 1000:.0f} ms: "
                f"{', '.join(names)}",
                flush=True,
            )
        print(f"{reloads} reloads, {len(deleted_maps(process.pid))} deleted maps")
    return _verdict(samples, answered, refused, lost)


def _change(bundle: Path, number: int) -> None:
    """Describe the model in other words, as another version of it would."""
    file = bundle / "bundle.json"
    draft = bundle / "bundle.json.draft"
    draft.write_text(json.dumps(json.loads(file.read_text()) | {"description": f"{number}"}))
    draft.replace(file)


async def _period(port: int, names: list[str], seed: int) -> Outcome:
    stop = asyncio.Event()
    async with under(names, port, seed):
        polite = asyncio.create_task(ask_until(stop, "127.0.0.1", port, CLIENTS, pause_s=0.1))
        await asyncio.sleep(PERIOD_S)
        stop.set()
        return await polite


def _verdict(samples: list[int], answered: int, refused: int, lost: int) -> int:
    quarter = max(1, int(len(samples) * WARM_SHARE))
    warm = statistics.median(samples[quarter : 2 * quarter] or samples)
    last = statistics.median(samples[-quarter:])
    growth_mb = (last - warm) / MB
    print(
        f"{answered} answers, {refused} refused, {lost} lost; memory {warm / MB:.1f} MB when warm, "
        f"{last / MB:.1f} MB at the end, at most {max(samples) / MB:.1f} MB"
    )
    flat = growth_mb < ALLOWED_GROWTH_MB
    return 0 if flat and not lost and refused <= ALLOWED_REFUSALS * answered else 1


def main() -> int:
    """Read the arguments, and run the mix."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        bundle = Path(directory) / "bundle"
        shutil.copytree(default_bundle_path(), bundle)
        return asyncio.run(mix(arguments.minutes, arguments.seed, bundle))


if __name__ == "__main__":
    sys.exit(main())
