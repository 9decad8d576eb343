"""The process that fuzzes one target with atheris.

    python -m tests.fuzzing.worker TARGET CORPUS [LIBFUZZER_FLAG ...]

Only this module needs atheris.
"""

import hashlib
import sys
from pathlib import Path
from random import Random

import atheris

from tests.fuzzing.target import Target, find_target, run_input


def main() -> None:
    """Write the seeds into the corpus and fuzz until libFuzzer ends the process."""
    program, name, corpus, *flags = sys.argv
    with atheris.instrument_imports(include=["fillmask", "fillmask_model"]):
        target = find_target(name)
    for seed in target.seeds():
        (Path(corpus) / hashlib.sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)
    atheris.Setup(
        [program, corpus, *flags],
        lambda data: run_input(target, data),
        custom_mutator=lambda data, size, seed: _mutate(target, data, size, seed),
        custom_crossover=lambda data, other, size, seed: _cross(target, data, other, size, seed),
    )
    atheris.Fuzz()


def _mutate(target: Target, data: bytes, max_size: int, seed: int) -> bytes:
    draw = Random(seed)  # noqa: S311 - a choice, not a secret
    mutated = target.mutate(data, draw, lambda part: atheris.Mutate(part, max(max_size, 1)))
    return mutated if len(mutated) <= max_size else data


def _cross(target: Target, data: bytes, other: bytes, max_size: int, seed: int) -> bytes:
    crossed = target.cross(data, other, Random(seed))  # noqa: S311 - a choice, not a secret
    return crossed if len(crossed) <= max_size else data


if __name__ == "__main__":
    main()
