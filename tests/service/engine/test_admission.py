"""Admission of requests by the batcher."""

import asyncio

import pytest

from service.engine.admission import MAX_RETRY_AFTER_S, Throughput
from service.engine.batcher import Batcher
from service.errors import InvalidRequestError, OverloadedError
from service.observability.statistics import BatchStatistics
from tests.service.fake_runtime import FakeRuntime, ends, text, with_batcher


def test_throughput_is_unknown_before_the_first_large_batch() -> None:
    speed = Throughput(96)
    assert speed.tokens_per_s is None
    speed.record(95, 1)
    assert speed.tokens_per_s is None
    speed.record(96, 1)
    assert speed.tokens_per_s == pytest.approx(96)


def test_small_batches_do_not_count() -> None:
    """A batch of one text computes fewer tokens per second than the batches of a queue."""
    speed = Throughput(100)
    speed.record(200, 0.1)
    for _ in range(100):
        speed.record(5, 0.01)
    assert speed.tokens_per_s == pytest.approx(2000)


def test_large_batches_have_more_weight() -> None:
    """The throughput is the sum of the tokens by the sum of the seconds."""
    speed = Throughput(10)
    speed.record(2000, 1)
    for _ in range(3):
        speed.record(10, 0.02)
    assert speed.tokens_per_s == pytest.approx(2000, rel=0.1)


def test_old_batches_decay() -> None:
    """After some tens of batches, the throughput is that of a machine that has become slower."""
    speed = Throughput(96)
    for _ in range(100):
        speed.record(1000, 0.1)
    assert speed.tokens_per_s == pytest.approx(10_000)
    for _ in range(60):
        speed.record(1000, 1)
    assert speed.tokens_per_s == pytest.approx(1000, rel=0.05)


def test_overload_is_rejected_immediately() -> None:
    """Waiting and running tokens count toward the limit."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        accepted = [asyncio.create_task(batcher.submit([text(i, 5)])) for i in range(2)]
        await fake.wait_until_at_work()
        with pytest.raises(OverloadedError) as caught:
            await batcher.submit([text(3, 1)])
        assert 1 <= caught.value.retry_after_s <= MAX_RETRY_AFTER_S
        assert caught.value.status == 429
        fake.go.set()
        assert ends(await accepted[0]) == [[0, 1]]
        assert ends(await accepted[1]) == [[1, 1]]
        assert ends(await batcher.submit([text(3, 10)])) == [[3, 1]]

    with_batcher(fake, scenario, max_waiting_tokens=10)


def test_passes_of_a_request_are_admitted_together() -> None:
    """A rejected request leaves nothing in the queue."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await fake.wait_until_at_work()
        with pytest.raises(OverloadedError):
            await batcher.submit([text(7, 3), text(8, 3)])
        fake.go.set()
        await first

    with_batcher(fake, scenario, max_waiting_tokens=10)
    assert fake.seen == [1]


def test_a_request_above_the_limit_is_invalid() -> None:
    """It is not an overload: a retry cannot succeed."""

    async def scenario(batcher: Batcher) -> None:
        with pytest.raises(InvalidRequestError, match="has 11 tokens in all; at most 10 are"):
            await batcher.submit([text(1, 11)])

    with_batcher(FakeRuntime(), scenario, max_waiting_tokens=10)


def test_a_cancelled_request_is_not_computed() -> None:
    """Its tokens are released immediately."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await fake.wait_until_at_work()
        cancelled = asyncio.create_task(batcher.submit([text(2, 5)]))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        last = asyncio.create_task(batcher.submit([text(3, 5)]))
        await asyncio.sleep(0)
        fake.go.set()
        await asyncio.gather(first, last)

    with_batcher(fake, scenario, max_waiting_tokens=10)
    assert fake.seen == [1, 3]


def test_retry_after_is_the_estimated_wait() -> None:
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        batcher._admission.throughput.record(20, 10)
        accepted = asyncio.create_task(batcher.submit([text(4, 20)]))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError) as caught:
            await batcher.submit([text(5, 1)])
        assert caught.value.retry_after_s == 5
        fake.go.set()
        await accepted

    with_batcher(fake, scenario, workers=2, max_waiting_tokens=20)


def test_bulk_passes_do_not_delay_interactive_ones() -> None:
    """The bulk lane has its own limit and runs when the interactive lane is empty."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        passes = asyncio.create_task(batcher.submit([text(i, 6) for i in range(4)], bulk=True))
        await fake.wait_until_at_work()
        with pytest.raises(OverloadedError):
            await batcher.submit([text(9, 6)], bulk=True)
        fill = asyncio.create_task(batcher.submit([text(7, 6)]))
        await asyncio.sleep(0)
        fake.go.set()
        assert ends(await fill) == [[7, 1]]
        assert ends(await passes) == [[i, 1] for i in range(4)]

    with_batcher(fake, scenario, max_waiting_tokens=6, max_bulk_tokens=24)
    assert fake.seen == [0, 7, 1, 2, 3]


def test_a_cancelled_bulk_request_releases_its_tokens() -> None:
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await fake.wait_until_at_work()
        cancelled = asyncio.create_task(batcher.submit([text(2, 5), text(3, 5)], bulk=True))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        last = asyncio.create_task(batcher.submit([text(4, 5), text(5, 5)], bulk=True))
        await asyncio.sleep(0)
        fake.go.set()
        await asyncio.gather(first, last)

    with_batcher(fake, scenario, max_waiting_tokens=10, max_bulk_tokens=10)
    assert fake.seen == [1, 4, 5]


def test_a_request_is_rejected_if_the_estimated_wait_is_too_long() -> None:
    """The recent throughput counts, however few the tokens are."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        batcher._admission.throughput.record(20, 10)
        accepted = [asyncio.create_task(batcher.submit([text(i, 5)])) for i in (1, 2)]
        await fake.wait_until_at_work()
        with pytest.raises(OverloadedError) as caught:
            await batcher.submit([text(3, 1)])
        assert caught.value.retry_after_s == 5
        with pytest.raises(OverloadedError):
            batcher.raise_if_overloaded()
        batcher.raise_if_overloaded(bulk=True)
        fake.go.set()
        await asyncio.gather(*accepted)
        batcher.raise_if_overloaded()

    with_batcher(fake, scenario, max_wait_s=4)


def test_a_long_request_is_accepted_by_an_idle_batcher() -> None:
    """Its own duration does not count toward the longest wait."""

    async def scenario(batcher: Batcher) -> None:
        batcher._admission.throughput.record(20, 10)
        assert ends(await batcher.submit([text(1, 50)])) == [[1, 1]]

    with_batcher(FakeRuntime(), scenario, max_wait_s=1)


def test_rejections_are_counted_by_reason() -> None:
    """A request above the limit itself is not counted."""
    fake, statistics = FakeRuntime(), BatchStatistics()

    async def full(batcher: Batcher) -> None:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 10)]))
        await fake.wait_until_at_work()
        with pytest.raises(OverloadedError):
            batcher.raise_if_overloaded()
        assert batcher.retry_after_s() == 1
        with pytest.raises(InvalidRequestError):
            await batcher.submit([text(1, 11)])
        fake.go.set()
        await first

    async def slow(batcher: Batcher) -> None:
        await batcher.submit([text(1, 5)])
        assert batcher.retry_after_s() is None
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await batcher.submit([text(1, 5)])
        fake.go.set()
        await first

    with_batcher(fake, full, max_waiting_tokens=10, statistics=statistics)
    assert statistics.refusals == {"queue_full": 2}
    with_batcher(fake, slow, max_wait_s=0, statistics=statistics)
    assert statistics.refusals == {"queue_full": 2, "wait_too_long": 1}


def test_requests_that_are_still_being_read_count_as_load() -> None:
    """Otherwise each of many simultaneous requests is read before it is rejected."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        assert batcher.retry_after_s(10**6) is None  # the throughput is unknown
        for _ in range(200):
            await batcher.submit([text(1, 5)])
        batcher._admission.throughput = Throughput(1)
        batcher._admission.throughput.record(10, 1)  # two requests a second
        assert batcher.retry_after_s(0) is None
        assert batcher.retry_after_s(7) is None
        assert batcher.retry_after_s(9) is not None

    with_batcher(fake, scenario, max_wait_s=4)
