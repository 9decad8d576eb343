"""Command that fuzzes targets, two at a time, or replays one input.

    python -m tests.fuzzing                          # a minute of each target
    python -m tests.fuzzing bundle --seconds 3600
    python -m tests.fuzzing bundle --input FILE      # without atheris

atheris, which guides the fuzzing, is installed with the other tools of the tests.
"""

import argparse
import datetime as dt
import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzzing.process import Outcome, fuzz
from tests.fuzzing.target import NAMES, find_target, run_input
from tests.running_server import ROOT

_SHOWN_BYTES = 8_000  # all of most inputs, because a CI machine loses its files
_DIRECTORY = ROOT / "build" / "fuzzing"


def main() -> int:
    """Return the exit code, which is 1 after a finding."""
    options = _parse()
    if options.input is not None:
        run_input(find_target(options.targets[0]), options.input.read_bytes())
        print(f"{options.input}: no finding")
        return 0
    if importlib.util.find_spec("atheris") is None:
        print("fuzzing needs atheris, which has packages for Linux on x86-64 only; nothing fuzzed")
        return 0
    print(f"seed {options.seed}, {options.seconds:g} s per target", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {
            name: pool.submit(fuzz, name, options.seconds, options.seed, options.directory)
            for name in options.targets
        }
        for name, one in running.items():
            _report(name, one.result())
    return 0 if all(one.result().passed for one in running.values()) else 1


def _report(name: str, outcome: Outcome) -> None:
    print(f"{name}: {outcome.figures}", flush=True)
    if outcome.log:
        print(outcome.log)
    if outcome.finding is not None:
        content = outcome.finding.read_bytes()
        print(f"FINDING in {outcome.finding}, {len(content)} bytes: {content[:_SHOWN_BYTES]!r}")
        print(f"replay it: python -m tests.fuzzing {name} --input {outcome.finding}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"among {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="time of each target")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument(
        "--seed",
        type=int,
        default=int(f"{dt.datetime.now(dt.UTC):%Y%m%d}"),
        help="seed of the mutations, by default the date",
    )
    parser.add_argument("--directory", type=Path, default=_DIRECTORY, help="corpora and findings")
    parser.add_argument("--input", type=Path, help="file to replay instead of fuzzing")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(NAMES):
        parser.error(f"unknown target {min(unknown)}; allowed: {', '.join(NAMES)}")
    if options.input is not None and len(options.targets) != 1:
        parser.error("--input needs exactly one target")
    options.targets = options.targets or list(NAMES)
    return options


if __name__ == "__main__":
    sys.exit(main())
