"""Limits of the requests to a model."""

from pathlib import Path

from fillmask.registry.limits import without_limits
from fillmask.settings import Settings


def test_without_limits(tmp_path: Path) -> None:
    before = Settings(bundle=tmp_path, threads=3, max_batch_tokens=77, max_waiting_tokens=1)
    after = without_limits(before)
    assert (after.bundle, after.threads, after.max_batch_tokens) == (tmp_path, 3, 77)
    assert min(after.max_waiting_tokens, after.max_bulk_tokens, after.max_masks) > 2**40
    assert before.max_waiting_tokens == 1
