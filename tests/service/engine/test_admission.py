"""Admission by tokens and by throughput, in both lanes."""

import asyncio

import pytest

from fillmask.engine.admission import MAX_RETRY_AFTER_S, Throughput
from fillmask.errors import InvalidRequestError, OverloadedError
from fillmask.observability.metrics import Metrics
from tests.service.fake_runtime import FakeRuntime, ends, running_batcher, text
from tests.service.scrape import rendered, value


def test_throughput_is_unknown_before_the_first_large_batch() -> None:
    speed = Throughput(96)
    assert speed.tokens_per_s is None
    speed.record(95, 1)
    assert speed.tokens_per_s is None
    speed.record(96, 1)
    assert speed.tokens_per_s == pytest.approx(96)


def test_small_batches_do_not_count() -> None:
    # A batch of one text has a low throughput, but a long queue runs in large batches.
    speed = Throughput(100)
    speed.record(200, 0.1)
    for _ in range(100):
        speed.record(5, 0.01)
    assert speed.tokens_per_s == pytest.approx(2000)


def test_largest_batches_count_most() -> None:
    # The tokens and the time of a batch determine its weight in the throughput.
    speed = Throughput(10)
    speed.record(2000, 1)
    for _ in range(3):
        speed.record(10, 0.02)
    assert speed.tokens_per_s == pytest.approx(2000, rel=0.1)


def test_old_batches_are_forgotten() -> None:
    # Tens of batches are enough to detect that a machine has become slower.
    speed = Throughput(96)
    for _ in range(100):
        speed.record(1000, 0.1)
    assert speed.tokens_per_s == pytest.approx(10_000)
    for _ in range(60):
        speed.record(1000, 1)
    assert speed.tokens_per_s == pytest.approx(1000, rel=0.05)


async def test_overload_is_rejected_at_once() -> None:
    # The limit counts both waiting and running tokens. The response has a Retry-After header.
    fake = FakeRuntime()

    async with running_batcher(fake, max_waiting_tokens=10) as batcher:
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


async def test_texts_are_admitted_together_or_not_at_all() -> None:
    # A rejected request leaves nothing in the queue.
    fake = FakeRuntime()

    async with running_batcher(fake, max_waiting_tokens=10) as batcher:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await fake.wait_until_at_work()
        with pytest.raises(OverloadedError):
            await batcher.submit([text(7, 3), text(8, 3)])
        fake.go.set()
        await first
    assert fake.seen == [1]


async def test_request_above_the_limit_is_invalid() -> None:
    # A retry would not help, so the error is not an overload.
    async with running_batcher(FakeRuntime(), max_waiting_tokens=10) as batcher:
        with pytest.raises(InvalidRequestError, match=r"at most 10 tokens in all \(got 11\)"):
            await batcher.submit([text(1, 11)])


async def test_cancelled_requests_are_not_computed() -> None:
    # The tokens of a cancelled request stop counting immediately.
    fake = FakeRuntime()

    async with running_batcher(fake, max_waiting_tokens=10) as batcher:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await fake.wait_until_at_work()
        leaver = asyncio.create_task(batcher.submit([text(2, 5)]))
        await asyncio.sleep(0)
        leaver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaver
        last = asyncio.create_task(batcher.submit([text(3, 5)]))
        await asyncio.sleep(0)
        fake.go.set()
        await asyncio.gather(first, last)
    assert fake.seen == [1, 3]


async def test_retry_after_is_measured() -> None:
    # Retry-After is the time to compute the waiting tokens, which for a bulk request are those of
    # both lanes, because interactive requests run first.
    fake = FakeRuntime()

    async with running_batcher(
        fake, workers=2, max_waiting_tokens=20, max_bulk_tokens=8
    ) as batcher:
        fake.go.clear()
        batcher._admission.throughput.record(20, 10)
        accepted = [
            asyncio.create_task(batcher.submit([text(4, 20)])),
            asyncio.create_task(batcher.submit([text(5, 8)], bulk=True)),
        ]
        await asyncio.sleep(0)
        for bulk, seconds in ((False, 5), (True, 7)):
            with pytest.raises(OverloadedError) as caught:
                await batcher.submit([text(6, 1)], bulk=bulk)
            assert caught.value.retry_after_s == seconds
        fake.go.set()
        await asyncio.gather(*accepted)


async def test_bulk_passes_do_not_delay_interactive_requests() -> None:
    # Bulk passes have their own limit and run when no interactive request waits.
    fake = FakeRuntime()

    async with running_batcher(fake, max_waiting_tokens=6, max_bulk_tokens=24) as batcher:
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
    assert fake.seen == [0, 7, 1, 2, 3]


async def test_cancelled_bulk_request_gives_back_its_tokens() -> None:
    # The tokens of a cancelled request stop counting immediately.
    fake = FakeRuntime()

    async with running_batcher(fake, max_waiting_tokens=10, max_bulk_tokens=10) as batcher:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await fake.wait_until_at_work()
        leaver = asyncio.create_task(batcher.submit([text(2, 5), text(3, 5)], bulk=True))
        await asyncio.sleep(0)
        leaver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaver
        last = asyncio.create_task(batcher.submit([text(4, 5), text(5, 5)], bulk=True))
        await asyncio.sleep(0)
        fake.go.set()
        await asyncio.gather(first, last)
    assert fake.seen == [1, 4, 5]


async def test_wait_that_would_be_too_long_is_rejected() -> None:
    # The estimated wait depends on throughput and waiting tokens, not on the rejected request.
    fake = FakeRuntime()

    async with running_batcher(fake, max_wait_s=4) as batcher:
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


async def test_lone_request_may_take_longer_than_the_limit() -> None:
    async with running_batcher(FakeRuntime(), max_wait_s=1) as batcher:
        batcher._admission.throughput.record(20, 10)
        assert ends(await batcher.submit([text(1, 50)])) == [[1, 1]]


async def test_rejections_are_counted_by_reason() -> None:
    # Invalid requests do not count as rejections.
    fake, metrics = FakeRuntime(), Metrics()

    def rejections(reason: str) -> float:
        return value(rendered(metrics), "fillmask_rejected_total", reason=reason, model="m")

    async with running_batcher(
        fake, max_waiting_tokens=10, metrics=metrics.for_model("m")
    ) as batcher:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 10)]))
        await fake.wait_until_at_work()
        with pytest.raises(OverloadedError) as caught:
            batcher.raise_if_overloaded()
        assert caught.value.retry_after_s == 1
        with pytest.raises(InvalidRequestError):
            await batcher.submit([text(1, 11)])
        fake.go.set()
        await first
    assert (rejections("queue_full"), rejections("wait_too_long")) == (1, 0)
    async with running_batcher(fake, max_wait_s=0, metrics=metrics.for_model("m")) as batcher:
        await batcher.submit([text(1, 5)])
        batcher.raise_if_overloaded()
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await batcher.submit([text(1, 5)])
        fake.go.set()
        await first
    assert (rejections("queue_full"), rejections("wait_too_long")) == (1, 1)
