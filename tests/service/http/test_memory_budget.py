"""Limit on the memory of all requests."""

import time
from contextlib import suppress

import pytest

from fillmask.errors import OverloadedError
from fillmask.http import memory_budget
from fillmask.http.memory_budget import MemoryBudget


def test_claim_is_released_at_the_end_of_its_block() -> None:
    # An exception also releases the claim.
    budget = MemoryBudget("bodies", 100, 0)
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
    budget = MemoryBudget("bodies", 100, 0)
    with budget.claim() as first, budget.claim() as second:
        first.add(60)
        second.add(30)
        with pytest.raises(OverloadedError) as caught:
            second.add(11)
        assert "bodies" in caught.value.text
        assert caught.value.retry_after_s == 1
        assert budget.held_bytes == 90
    assert budget.held_bytes == 0


def test_small_claims_are_free() -> None:
    # Only the bytes above the limit for small claims count.
    budget = MemoryBudget("bodies", 100, 10)
    with budget.claim() as large:
        large.add(110)
        assert budget.held_bytes == 100
        for _ in range(1_000):
            with budget.claim() as small:
                small.add(4)
                small.add(6)
                with pytest.raises(OverloadedError):
                    small.add(1)


def test_oldest_growing_claim_is_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    # The next addition to an evicted claim fails.
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    budget = MemoryBudget("bodies", 100, 10)
    held: list[bytes] = []
    with budget.claim() as slow, budget.claim() as settled, budget.claim() as new:
        slow.grow(held.clear)
        for claim in (settled, new):
            claim.grow(lambda: pytest.fail("evicted"))
        settled.add(50)
        settled.settle()
        held.append(b"x" * 60)
        slow.add(60)
        now_s += memory_budget.EVICTABLE_AFTER_S - 0.1
        with pytest.raises(OverloadedError):
            new.add(40)
        now_s += 0.2
        new.add(10)
        assert slow.evicted
        assert held == []
        assert budget.held_bytes == 40 + 40
        with pytest.raises(OverloadedError):
            slow.add(1)
        assert budget.held_bytes == 80
    assert budget.held_bytes == 0
    assert not budget.growing
