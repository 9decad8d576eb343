"""Fixtures for the tests of training."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from fillmask_model import optimization
from tests.model.pretraining.pair_runs import MakeRun, pair_run


@pytest.fixture
def run_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRun:
    """Function that makes a tiny run on pairs in float32, for a tolerance of 1e-5 nats."""
    monkeypatch.setattr(optimization, "has_bfloat16", lambda _: False)
    return partial(pair_run, tmp_path)
