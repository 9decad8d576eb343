"""Seeds of today, seeds that once failed, and what a violation reports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation import seeds
from tests.simulation.bugs import BUGS
from tests.simulation.seeds import first_seed, run_seed

ROOT = Path(__file__).parents[2]
SEEDS = (1014, 2001)
REQUESTS = 500  # so that a world takes a second
QUICK_BUG = "passes swap their results"  # takes the simulation only a second


@pytest.mark.processes
def test_a_seed_has_one_trace_whatever_the_hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "REQUESTS", REQUESTS)
    outcomes = [seeds.run_seed(seed) for seed in SEEDS]  # with a random hash seed
    assert [one.violation for one in outcomes] == [None, None]
    digests = [one.digest for one in outcomes]
    assert digests[0] != digests[1]
    program = f"""
from tests.simulation import seeds

seeds.REQUESTS = {REQUESTS}
for seed in {SEEDS}:
    print(seeds.run_seed(seed).digest)
"""
    repeated = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert repeated.stdout.split() == digests


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
