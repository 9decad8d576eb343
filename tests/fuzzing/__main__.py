"""Command that fuzzes targets, two at a time, or replays one input.

    python -m tests.fuzzing                          # a minute of each target
    python -m tests.fuzzing bundle --seconds 3600
    python -m tests.fuzzing bundle --input FILE      # without atheris

atheris and its libFuzzer do the rest: coverage, corpora, limits, findings. Their output is the log
of a target.
"""

import argparse
import datetime as dt
import hashlib
import importlib.util
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from tests.environments import ROOT, SOURCE_ROOTS
from tests.fuzzing.target import NAMES, find_target, run_input

_DIRECTORY = ROOT / "build" / "fuzzing"
_LOG_LINES = 30
_SHOWN_BYTES = 8_000  # all of most inputs, because a CI machine loses its files
_FLAGS = (
    *("-max_len=262144", "-len_control=0", "-print_final_stats=1"),
    # An input that takes more than a second of CPU time is a finding already (`run_input`).
    "-timeout=60",
    "-rss_limit_mb=1500",  # torch and the tokenizers take 450 MB
)


def main() -> int:
    """Return the exit code, which is 1 after a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"among {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=int, default=60, help="time of each target")
    today = int(f"{dt.datetime.now(dt.UTC):%Y%m%d}")
    parser.add_argument("--seed", type=int, default=today, help="by default the date")
    parser.add_argument("--input", type=Path, help="file to replay instead of fuzzing")
    options = parser.parse_args()
    targets = options.targets or list(NAMES)
    if unknown := set(targets) - set(NAMES):
        parser.error(f"unknown target {min(unknown)}; allowed: {', '.join(NAMES)}")
    if options.input is not None:
        run_input(find_target(targets[0]), options.input.read_bytes())
        print(f"{options.input}: no finding")
        return 0
    if importlib.util.find_spec("atheris") is None:
        print("fuzzing needs atheris, which has packages for Linux on x86-64 only; nothing fuzzed")
        return 0
    print(f"seed {options.seed}, {options.seconds} s per target", flush=True)
    flags = [f"-max_total_time={options.seconds}", f"-seed={options.seed}", *_FLAGS]
    with ThreadPoolExecutor(2) as pool:
        return max(pool.map(lambda name: _fuzz(name, flags), targets))


def _fuzz(name: str, flags: list[str]) -> int:
    """Fuzz a target in a process of its own, and print the end of its log."""
    directory = _DIRECTORY / name
    (directory / "corpus").mkdir(parents=True, exist_ok=True)
    program = f"from tests.fuzzing.__main__ import fuzz_here; fuzz_here({name!r})"
    flags = [*flags, f"-artifact_prefix={directory}/"]
    paths = [*map(str, SOURCE_ROOTS), os.environ.get("PYTHONPATH", "")]
    log = directory / "log"
    before = set(directory.iterdir())
    with log.open("wb") as output:
        ended = subprocess.run(
            [sys.executable, "-c", program, str(directory / "corpus"), *flags],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            stdout=output,
            stderr=output,
            check=False,
        )
    end = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
    print(f"{name}: exit code {ended.returncode}", *end, "", sep="\n", flush=True)
    for finding in set(directory.iterdir()) - before - {log}:
        print(f"{finding.read_bytes()[:_SHOWN_BYTES]!r}")
        print(f"replay it: python -m tests.fuzzing {name} --input {finding}")
    return int(ended.returncode != 0)


def fuzz_here(name: str) -> None:
    """Write the seeds into the corpus and fuzz until libFuzzer ends the process."""
    import atheris  # noqa: PLC0415 - a replay needs none

    with atheris.instrument_imports(include=["fillmask", "fillmask_model"]):
        target = find_target(name)
    for seed in target.seeds():
        digest = hashlib.sha1(seed, usedforsecurity=False).hexdigest()
        Path(sys.argv[1], digest).write_bytes(seed)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        draw = Random(seed)  # noqa: S311 - a choice, not a secret
        mutated = target.mutate(data, draw, lambda part: atheris.Mutate(part, max(max_size, 1)))
        return mutated if len(mutated) <= max_size else data

    atheris.Setup(sys.argv, lambda data: run_input(target, data), custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
