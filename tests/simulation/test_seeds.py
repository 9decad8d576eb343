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
# the whole application and the batcher alone, under seeds that once showed a violation
ONCE_FAILED = (1014, 2001)
SERVICE_REQUESTS, BATCHER_REQUESTS = 500, 1_500  # requests, so that both worlds take a second
QUICK_BUG = "a cancelled request keeps its tokens"  # takes the simulation only a second


@pytest.mark.processes
def test_seeds_that_once_failed_have_one_trace_whatever_the_hash_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeds, "SERVICE_REQUESTS", SERVICE_REQUESTS)
    monkeypatch.setattr(seeds, "BATCHER_REQUESTS", BATCHER_REQUESTS)
    outcomes = [seeds.run_seed(seed) for seed in ONCE_FAILED]  # with a random hash seed
    assert [one.violation for one in outcomes] == [None, None]
    digests = [one.digest for one in outcomes]
    assert digests[0] != digests[1]
    program = f"""
from tests.simulation import seeds

seeds.SERVICE_REQUESTS, seeds.BATCHER_REQUESTS = {SERVICE_REQUESTS}, {BATCHER_REQUESTS}
for seed in {ONCE_FAILED}:
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
        outcomes = map(run_seed, range(1, 100, 2))
        assert any(one.violation is not None for one in outcomes)
