"""The measured speed."""

import pytest

from service.speed import Speed


def test_nothing_is_known_before_the_first_batch() -> None:
    """Not even a guess."""
    assert Speed().tokens_per_s is None


def test_large_batches_count_by_their_time() -> None:
    """Ten small batches that are slow for their tokens do not make a large one slow."""
    speed = Speed()
    speed.note(2000, 1)
    for _ in range(10):
        speed.note(5, 0.01)
    assert speed.tokens_per_s == pytest.approx(2000, rel=0.15)


def test_what_was_long_ago_is_forgotten() -> None:
    """A machine that has become slower is known to be so after some tens of batches."""
    speed = Speed()
    for _ in range(100):
        speed.note(1000, 0.1)
    assert speed.tokens_per_s == pytest.approx(10_000)
    for _ in range(60):
        speed.note(1000, 1)
    assert speed.tokens_per_s == pytest.approx(1000, rel=0.05)
