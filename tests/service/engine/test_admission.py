"""Admission through the batcher, and the throughput by which it estimates."""

import asyncio

import pytest

from fillmask.engine.admission import Throughput
from fillmask.errors import InvalidRequestError, OverloadedError
from fillmask.observability.metrics import Metrics
from tests.service.fake_runtime import FakeRuntime, ends, running_batcher, text
from tests.service.scrape import rendered, value

BATCH_TOKENS = 192


def test_only_large_batches_on_one_thread_count() -> None:
    # A batch of one text has a low throughput, but a long queue runs in large batches.
    speed = Throughput(96)
    speed.record(95, 1)
    assert speed.tokens_per_s is None
    speed.record(200, 0.1)
    for _ in range(100):
        speed.record(5, 0.01)
    assert speed.tokens_per_s == pytest.approx(2000)


def wrong(tokens_per_s: float) -> Throughput:
    """Return a wrong estimate of long experience."""
    throughput = Throughput(BATCH_TOKENS // 2)
    for _ in range(100):
        throughput.record(BATCH_TOKENS, BATCH_TOKENS / tokens_per_s)
    return throughput


def test_a_stall_counts_little_unless_it_comes_again() -> None:
    # A pause of the process says nothing about later batches, but the kernel stops a container at
    # its CPU limit in each period.
    throughput = wrong(1000)
    throughput.record(BATCH_TOKENS, 20)
    assert throughput.tokens_per_s == pytest.approx(1000 / 1.3, rel=1e-3)
    durations_s = [0.192, 0.192, 10]
    for seconds in durations_s * 50:
        throughput.record(BATCH_TOKENS, seconds)
    mean = 3 * BATCH_TOKENS / sum(durations_s)
    assert throughput.tokens_per_s == pytest.approx(mean, rel=0.2)


async def test_a_request_is_accepted_whole_or_rejected_at_once() -> None:
    # Waiting and running tokens count. A rejected request leaves nothing in the queue.
    fake = FakeRuntime()
    async with running_batcher(fake, max_waiting_tokens=10) as batcher:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await fake.wait_until_at_work()
        with pytest.raises(OverloadedError) as caught:
            await batcher.submit([text(7, 3), text(8, 3)])
        assert caught.value.status == 429
        second = asyncio.create_task(batcher.submit([text(2, 5)]))
        await asyncio.sleep(0)
        fake.go.set()
        assert ends(await first) == [[1, 1]]
        assert ends(await second) == [[2, 1]]
        assert ends(await batcher.submit([text(3, 10)])) == [[3, 1]]
    assert fake.seen == [1, 2, 3]


@pytest.mark.parametrize("bulk", [False, True])
async def test_a_cancelled_request_gives_back_its_tokens(*, bulk: bool) -> None:
    fake = FakeRuntime()
    limit = 10 + 5 * (not bulk)
    async with running_batcher(fake, max_waiting_tokens=limit, max_bulk_tokens=10) as batcher:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 5)]))
        await fake.wait_until_at_work()
        leaver = asyncio.create_task(batcher.submit([text(2, 5), text(3, 5)], bulk=bulk))
        await asyncio.sleep(0)
        leaver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaver
        last = asyncio.create_task(batcher.submit([text(4, 5), text(5, 5)], bulk=bulk))
        await asyncio.sleep(0)
        fake.go.set()
        await asyncio.gather(first, last)
    assert fake.seen == [1, 4, 5]


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
        batcher.raise_if_overloaded(bulk=True)
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
