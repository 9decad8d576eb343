"""Seeds of today, what a seed repeats, and what the simulation notices."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.simulation import seeds
from tests.simulation.bugs import BUGS
from tests.simulation.clients.lesson import learn_answers
from tests.simulation.clients.questions import questions
from tests.simulation.machine.disk import SALTS
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.seeds import first_seed, run_seed
from tests.simulation.trace import ViolationError

ROOT = Path(__file__).parents[2]
SEEDS = (1014, 2001)
REQUESTS = 500  # so that a world takes a second
QUICK_BUG = "passes swap their results"  # takes the simulation only a second


@pytest.mark.processes
def test_a_seed_has_one_trace_whatever_the_hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "REQUESTS", REQUESTS)
    first, second = (seeds.run_seed(seed) for seed in SEEDS)  # with a random hash seed
    assert (first.violation, second.violation) == (None, None)
    assert first.digest != second.digest
    program = f"""
from tests.simulation import seeds

seeds.REQUESTS = {REQUESTS}
print(seeds.run_seed({SEEDS[0]}).digest)
"""
    repeated = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert repeated.stdout.strip() == first.digest


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(first_seed(), first_seed() + 6))
def test_seeds_of_today(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.violation is None, f"python -m tests.simulation --seed {seed} --trace"
    assert outcome.statuses.total() > 3000


@pytest.mark.parametrize("name", BUGS)
def test_every_bug_can_be_put_into_the_service(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, attribute, replacement in BUGS[name]:
        monkeypatch.setattr(owner, attribute, replacement)
    if name == QUICK_BUG:
        monkeypatch.setattr(seeds, "REQUESTS", REQUESTS)
        outcomes = map(run_seed, range(1, 100))
        assert any(one.violation is not None for one in outcomes)


def test_answers_differ_and_most_questions_are_good() -> None:
    # A swapped answer shows because no other question has it, nor the same from another model.
    learn_answers()
    given = [answer for question in questions() for answer in question.answers.values()]
    good = [answer for status, answer in given if status == 200]
    assert len(set(good)) == len(good) > 150 * SALTS
    assert {status for status, _ in given if status != 200} == {400, 404, 413, 422}


async def _wait_for_ever(loop: VirtualLoop) -> None:
    await loop.create_future()


async def _raise(loop: VirtualLoop) -> None:
    loop.call_soon(lambda: 1 // 0)
    await asyncio.sleep(1)


async def _block(loop: VirtualLoop) -> None:
    thread = loop.greenlets.threading.Thread(target=lambda: loop.greenlets.sleep(1))
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("main", "message"),
    [
        (_wait_for_ever, "waits for ever"),
        (_raise, "ZeroDivisionError"),
        (_block, "event loop blocks"),
    ],
)
def test_violations(main: Callable[[VirtualLoop], Coroutine[Any, Any, None]], message: str) -> None:
    loop = VirtualLoop(Random(1))
    with pytest.raises(ViolationError, match=message):
        loop.run(main(loop))
