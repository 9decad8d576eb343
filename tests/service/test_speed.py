"""The measured speed."""

import pytest

from service.speed import Speed


def test_nothing_is_known_before_the_first_large_batch() -> None:
    """Not even a guess."""
    speed = Speed(96)
    assert speed.tokens_per_s is None
    speed.note(95, 1)
    assert speed.tokens_per_s is None
    speed.note(96, 1)
    assert speed.tokens_per_s == pytest.approx(96)


def test_small_batches_do_not_count() -> None:
    """A text at a time, they are slow for their tokens; a queue is not computed so."""
    speed = Speed(100)
    speed.note(200, 0.1)
    for _ in range(100):
        speed.note(5, 0.01)
    assert speed.tokens_per_s == pytest.approx(2000)


def test_the_largest_count_most() -> None:
    """By their tokens and their time, not each as much as the others."""
    speed = Speed(10)
    speed.note(2000, 1)
    for _ in range(3):
        speed.note(10, 0.02)
    assert speed.tokens_per_s == pytest.approx(2000, rel=0.1)


def test_what_was_long_ago_is_forgotten() -> None:
    """A machine that has become slower is known to be so after some tens of batches."""
    speed = Speed(96)
    for _ in range(100):
        speed.note(1000, 0.1)
    assert speed.tokens_per_s == pytest.approx(10_000)
    for _ in range(60):
        speed.note(1000, 1)
    assert speed.tokens_per_s == pytest.approx(1000, rel=0.05)
