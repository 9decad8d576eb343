"""Admission under any sequence of requests, and the recovery of the throughput."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fillmask.engine.admission import MAX_RETRY_AFTER_S, Admission, Throughput
from fillmask.engine.request_queue import RequestParts
from fillmask.errors import InvalidRequestError, OverloadedError

MAX_WAIT_S = 2.0
LANES = {False: "interactive", True: "bulk"}


class Lanes(RuleBasedStateMachine):
    """Requests of both lanes, with the unanswered tokens of each request."""

    @initialize(
        workers=st.integers(1, 4), interactive=st.integers(1, 100), bulk=st.integers(1, 300)
    )
    def create(self, workers: int, interactive: int, bulk: int) -> None:
        self.most = {False: interactive, True: bulk}
        self.workers = workers
        self.admission = Admission(workers, 16, interactive, bulk, MAX_WAIT_S)
        self.accepted: dict[bool, list[int]] = {False: [], True: []}

    @rule(tokens=st.integers(1, 120), bulk=st.booleans(), counts=st.booleans())
    def ask(self, tokens: int, *, bulk: bool, counts: bool) -> None:
        method: Any = self.admission.accept if counts else self.admission.check
        held, wait_s = sum(self.accepted[bulk]), self.seconds_for(sum(self.accepted[False]))
        if tokens > self.most[bulk]:
            scope = "over all its passes" if bulk else "in all"
            sentence = rf"have at most {self.most[bulk]} tokens {scope} \(got {tokens}\); send"
            with pytest.raises(InvalidRequestError, match=sentence):
                method(tokens, bulk=bulk, parts=RequestParts())
        elif held + tokens > self.most[bulk] or (not bulk and wait_s > MAX_WAIT_S):
            with pytest.raises(OverloadedError) as caught:
                method(tokens, bulk=bulk, parts=RequestParts())
            ahead = sum(self.accepted[False]) + (held if bulk else 0)
            seconds = math.ceil(self.seconds_for(ahead))
            assert caught.value.retry_after_s == min(max(seconds, 1), MAX_RETRY_AFTER_S)
        else:
            method(tokens, bulk=bulk, parts=RequestParts())
            if counts:
                self.accepted[bulk].append(tokens)

    def seconds_for(self, tokens: int) -> float:
        throughput = self.admission.throughput.tokens_per_s
        return 0 if throughput is None else tokens / throughput / self.workers

    @precondition(lambda self: any(self.accepted.values()))
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        # all passes of a request, or the first ones
        bulk = data.draw(st.sampled_from([lane for lane, held in self.accepted.items() if held]))
        held = self.accepted[bulk]
        place = data.draw(st.integers(0, len(held) - 1))
        tokens = data.draw(st.integers(1, held[place]))
        self.admission.release(tokens, bulk=bulk, parts=RequestParts())
        held[place] -= tokens
        if not held[place]:
            held.pop(place)

    @rule(tokens=st.integers(1, 16), seconds=st.floats(1e-4, 10), threads=st.integers(1, 2))
    def record(self, tokens: int, seconds: float, threads: int) -> None:
        self.admission.throughput.record(tokens, seconds, threads)

    @invariant()
    def counts_are_those_of_the_requests(self) -> None:
        if not hasattr(self, "admission"):
            return
        held = {name: sum(self.accepted[bulk]) for bulk, name in LANES.items()}
        assert self.admission.load.waiting_tokens == held
        assert self.admission.tokens == sum(held.values())
        assert all(held[name] <= self.most[bulk] for bulk, name in LANES.items())


test_lanes = Lanes.TestCase

BATCHES = st.lists(
    st.tuples(st.integers(1, 512), st.floats(1e-6, 3600), st.integers(1, 16)), max_size=60
)


@given(
    past=BATCHES, tokens_per_s=st.floats(100, 1e5), large=st.booleans(), threads=st.integers(1, 4)
)
def test_throughput_recovers_from_any_past(
    past: list[tuple[int, float, int]], tokens_per_s: float, threads: int, *, large: bool
) -> None:
    # 200 batches of the true speed on average bring the estimate within 5 %. Small batches, and
    # those on several threads, only raise it.
    throughput = Throughput(96)
    throughput.record(192, 0.02)
    for one in past:
        throughput.record(*one)
    before = throughput.tokens_per_s
    tokens = 192 if large else 8
    for number in range(200):
        drift = 0.9 if number % 2 else 1.1
        throughput.record(tokens, drift * tokens / tokens_per_s / threads, threads)
    after = throughput.tokens_per_s
    assert before is not None
    assert after is not None
    assert after >= 0.95 * tokens_per_s
    is_exact = large and threads == 1
    assert after <= (1.05 * tokens_per_s if is_exact else max(before, 1.05 * tokens_per_s))


@given(BATCHES, st.integers(1, 512), st.floats(1e-6, 1e6))
def test_a_batch_moves_the_estimate_by_a_bounded_factor(
    past: list[tuple[int, float, int]], tokens: int, seconds: float
) -> None:
    # A frozen process makes one batch slow by any factor.
    throughput = Throughput(1)
    for _ in range(100):
        throughput.record(256, 0.256)
    for one in past:
        throughput.record(*one)
    before = throughput.tokens_per_s
    assert before is not None
    throughput.record(tokens, seconds)
    after = throughput.tokens_per_s
    assert after is not None
    assert after >= before / 4 * 0.999
    assert math.isfinite(after)
