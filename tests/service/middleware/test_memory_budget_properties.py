"""Memory budget under any sequence of claims, compared with a list of their sizes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from fillmask.errors import OverloadedError
from fillmask.middleware.transfer import Claim, MemoryBudget

SIZES = st.integers(0, 120)


class Budget(RuleBasedStateMachine):
    """Claims of one budget, with the accepted bytes of each."""

    claims = Bundle("claims")

    @initialize(max_bytes=st.integers(0, 200), free_bytes=st.integers(0, 40))
    def create(self, max_bytes: int, free_bytes: int) -> None:
        self.budget = MemoryBudget(max_bytes, free_bytes)
        self.sizes: dict[Claim, int] = {}
        self.taken = 0

    def counted(self, size_bytes: int) -> int:
        return max(0, size_bytes - self.budget.free_bytes)

    @rule(target=claims)
    def open(self) -> Claim:
        claim = self.budget.claim().__enter__()
        self.sizes[claim] = 0
        return claim

    @rule(claim=claims, size_bytes=SIZES)
    def add(self, claim: Claim, size_bytes: int) -> None:
        grown = self.sizes[claim] + size_bytes
        more = self.counted(grown) - self.counted(self.sizes[claim])
        if more and self.budget.held_bytes + more > self.budget.max_bytes:
            with pytest.raises(OverloadedError, match="memory for request bodies") as caught:
                claim.add(size_bytes)
            assert caught.value.retry_after_s == 1
            return
        claim.add(size_bytes)
        self.sizes[claim] = grown
        self.taken += more

    @rule(claim=claims, size_bytes=SIZES)
    def send(self, claim: Claim, size_bytes: int) -> None:
        claim.record_sent(size_bytes)
        self.taken += size_bytes

    @rule(claim=consumes(claims), error=st.sampled_from([None, KeyError()]))
    def close(self, claim: Claim, error: KeyError | None) -> None:
        claim.__exit__(None if error is None else type(error), error, None)
        del self.sizes[claim]

    @invariant()
    def counts_are_those_of_the_open_claims(self) -> None:
        if not hasattr(self, "budget"):
            return
        assert self.budget.held_bytes == sum(map(self.counted, self.sizes.values()))
        assert 0 <= self.budget.held_bytes <= self.budget.max_bytes
        assert self.budget.taken_bytes == self.taken


Budget.TestCase.settings = settings(max_examples=50, stateful_step_count=30)
test_budget = Budget.TestCase
