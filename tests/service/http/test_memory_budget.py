"""Limit on the memory of all requests."""

from contextlib import suppress

import pytest

from fillmask.errors import OverloadedError
from fillmask.http.memory_budget import MemoryBudget


def test_claim_is_released_at_the_end_of_its_block() -> None:
    # An exception also releases the claim.
    budget = MemoryBudget(100, 0)
    with budget.claim() as claim:
        claim.add(40)
        claim.add(20)
        assert budget.held_bytes == 60
    assert budget.held_bytes == 0
    with suppress(ZeroDivisionError), budget.claim() as claim:
        claim.add(100 // budget.held_bytes)
    with suppress(ZeroDivisionError), budget.claim() as claim:
        claim.add(100)
        claim.add(1 // (budget.held_bytes - 100))
    assert budget.held_bytes == 0


def test_claim_above_the_budget_is_rejected() -> None:
    # Rejected bytes do not count. Bytes claimed earlier count until their release.
    budget = MemoryBudget(100, 0)
    with budget.claim() as first, budget.claim() as second:
        first.add(60)
        second.add(30)
        with pytest.raises(OverloadedError) as caught:
            second.add(11)
        assert "memory" in caught.value.text
        assert caught.value.retry_after_s == 1
        assert budget.held_bytes == 90
        second.add(10)
        assert budget.held_bytes == 100
    assert budget.held_bytes == 0


def test_small_claims_are_free() -> None:
    # Only the bytes above the limit for small claims count.
    budget = MemoryBudget(100, 10)
    with budget.claim() as large:
        large.add(110)
        assert budget.held_bytes == 100
        for _ in range(1_000):
            with budget.claim() as small:
                small.add(4)
                small.add(6)
                with pytest.raises(OverloadedError):
                    small.add(1)
