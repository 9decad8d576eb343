"""Availability and memory of a service under a random mix of attacks.

    .venv-dev/bin/python -m benchmarks.hostile.mix [--minutes N] [--seed N]

Each period of 10 s has one to four attacks and two legitimate clients, which send one small
request at a time. In about 30 % of the periods the service reloads a changed bundle. The script
prints the memory and the responses of each period. The script fails if the service ends or if a
legitimate client gets no response or a status other than 200 and 429. It also fails if the service
rejects more than 1 % of the legitimate requests or if memory grows by 40 MB or more.
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

from benchmarks.hostile.attacks import ATTACKS, under
from fillmask.bundles.bundle import default_bundle_path
from tests.chaos.load import Outcome, ask_until
from tests.chaos.memory import MB, deleted_maps, resident_bytes
from tests.chaos.process import serving

PERIOD_S = 10.0
CLIENTS = 2
MOST_ATTACKS = 4
WARM_SHARE = 0.25  # share of the time for warm-up, in which the process sees all attacks
RELOADED_SHARE = 0.3  # share of the periods with a reload
# maximum difference of median memory between the last quarter and the quarter after warm-up
ALLOWED_GROWTH_MB = 40
ALLOWED_REFUSALS = 0.01  # maximum share of the legitimate clients' requests with status 429


async def mix(minutes: float, seed: int, bundle: Path) -> int:
    """Run the mix and return the exit status."""
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
                print(f"the service has ended with exit code {process.returncode} under {names}")
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
    """Change the model's description in the bundle, as a new version of the bundle does."""
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
        f"{answered} answered, {refused} rejected, {lost} lost. Memory {warm / MB:.1f} MB after "
        f"warm-up, {last / MB:.1f} MB at the end, {max(samples) / MB:.1f} MB at the peak"
    )
    flat = growth_mb < ALLOWED_GROWTH_MB
    return 0 if flat and not lost and refused <= ALLOWED_REFUSALS * answered else 1


def main() -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    minutes_help = "duration in minutes (default: %(default)s)"
    parser.add_argument("--minutes", type=float, default=10.0, help=minutes_help)
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the attacks (default: %(default)s)"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        bundle = Path(directory) / "bundle"
        shutil.copytree(default_bundle_path(), bundle)
        return asyncio.run(mix(arguments.minutes, arguments.seed, bundle))


if __name__ == "__main__":
    sys.exit(main())
