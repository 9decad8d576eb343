"""Inputs that were findings once, valid inputs, and failures that the targets must notice."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.fuzzing import target as fuzzing
from tests.fuzzing.target import (
    NAMES,
    FindingError,
    Target,
    check_message,
    find_target,
    run_input,
)

FINDINGS = Path(__file__).with_name("findings")
MAX_CPU_S = 0.05
MANY = [str(number) for number in range(20_000)]


def large_inputs(name: str, target: Target) -> Iterator[bytes]:
    """Yield findings that would be large files."""
    yield b'{"a":' + b"[" * 100_000
    yield b'{"a":' + b"1" * 5_000 + b"}"
    if name not in {"bundle", "config"}:
        return
    for seed in target.seeds():
        fields = json.loads(seed)
        for head in ("classification", "classifier"):
            if fields.get(head):
                yield json.dumps(fields | {head: fields[head] | {"labels": MANY}}).encode()


@pytest.mark.parametrize("name", NAMES)
def test_findings_stay_fixed_and_other_inputs_pass(name: str) -> None:
    target = find_target(name)
    for path in sorted((FINDINGS / name).glob("*")):
        run_input(target, path.read_bytes())
    for data in large_inputs(name, target):
        run_input(target, data)
    seeds = list(target.seeds())
    assert len(set(seeds)) == len(seeds) >= 3
    draw = Random(0)  # noqa: S311 - a choice, not a secret
    # a hundred mutants show that the mutations work at all; the fuzzing makes millions
    mutants = {target.mutate(draw.choice(seeds), draw, lambda data: data[:-1]) for _ in range(100)}
    assert len(mutants) > 50
    for data in (*seeds, *mutants):
        run_input(target, data)


def test_every_finding_has_a_target() -> None:
    assert {path.name for path in FINDINGS.iterdir()} <= set(NAMES)


class Sleepless(Target):
    """Target whose inputs say what goes wrong."""

    def seeds(self) -> Iterator[bytes]:
        yield b"{}"

    def check(self, data: bytes) -> None:
        if data == b"slow":
            end_s = time.thread_time() + 1.1 * MAX_CPU_S
            while time.thread_time() < end_s:
                pass
        if data == b"undocumented":
            raise KeyError(data)


@pytest.mark.parametrize(("data", "error"), [(b"slow", FindingError), (b"undocumented", KeyError)])
def test_failures_are_findings(
    monkeypatch: pytest.MonkeyPatch, data: bytes, error: type[Exception]
) -> None:
    monkeypatch.setattr(fuzzing, "MAX_CPU_S", MAX_CPU_S)
    run_input(Sleepless(), b"{}")
    with pytest.raises(error):
        run_input(Sleepless(), data)


@pytest.mark.parametrize("text", ["", "a" * 1_001, "a\nb", "a\rb", "\ud800"])
def test_other_messages_are_findings(text: str) -> None:
    check_message("a")
    with pytest.raises(FindingError):
        check_message(text)
