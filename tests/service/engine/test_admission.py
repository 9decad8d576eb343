"""The batcher's admission: what is accepted, refused, and let go."""

import asyncio

import pytest

from service.engine.admission import MAX_RETRY_AFTER_S, Throughput
from service.engine.batcher import Batcher
from service.errors import InvalidRequestError, OverloadedError
from service.observability.statistics import BatchStatistics
from tests.service.fake_runtime import FakeRuntime, ends, text, with_batcher


def test_nothing_is_known_before_the_first_large_batch() -> None:
    """Not even a guess."""
    speed = Throughput(96)
    assert speed.tokens_per_s is None
    speed.note(95, 1)
    assert speed.tokens_per_s is None
    speed.note(96, 1)
    assert speed.tokens_per_s == pytest.approx(96)


def test_small_batches_do_not_count() -> None:
    """A text at a time, they are slow for their tokens; a queue is not computed so."""
    speed = Throughput(100)
    speed.note(200, 0.1)
    for _ in range(100):
        speed.note(5, 0.01)
    assert speed.tokens_per_s == pytest.approx(2000)


def test_the_largest_count_most() -> None:
    """By their tokens and their time, not each as much as the others."""
    speed = Throughput(10)
    speed.note(2000, 1)
    for _ in range(3):
        speed.note(10, 0.02)
    assert speed.tokens_per_s == pytest.approx(2000, rel=0.1)


def test_what_was_long_ago_is_forgotten() -> None:
    """A machine that has become slower is known to be so after some tens of batches."""
    speed = Throughput(96)
    for _ in range(100):
        speed.note(1000, 0.1)
    assert speed.tokens_per_s == pytest.approx(10_000)
    for _ in range(60):
        speed.note(1000, 1)
    assert speed.tokens_per_s == pytest.approx(1000, rel=0.05)


def test_overload_is_refused_at_once() -> None:
    """What waits and what runs count; above the limit the answer is when to come again."""
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


def test_texts_are_admitted_together_or_not_at_all() -> None:
    """A refused caller leaves nothing in the queue."""
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


def test_what_can_never_be_accepted_is_told_as_such() -> None:
    """A request above the limit itself is no overload: trying again would not help."""

    async def scenario(batcher: Batcher) -> None:
        with pytest.raises(InvalidRequestError, match="has 11 tokens in all; at most 10 are"):
            await batcher.submit([text(1, 11)])

    with_batcher(FakeRuntime(), scenario, max_waiting_tokens=10)


def test_callers_who_left_are_not_computed() -> None:
    """A cancelled caller is dropped from the queue, and its permit is free at once."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
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

    with_batcher(fake, scenario, max_waiting_tokens=10)
    assert fake.seen == [1, 3]


def test_retry_after_is_measured() -> None:
    """A caller is sent away for as long as what waits will take."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        batcher._admission.speed.note(20, 10)
        accepted = asyncio.create_task(batcher.submit([text(4, 20)]))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError) as caught:
            await batcher.submit([text(5, 1)])
        assert caught.value.retry_after_s == 5
        fake.go.set()
        await accepted

    with_batcher(fake, scenario, workers=2, max_waiting_tokens=20)


def test_many_passes_hold_up_nobody() -> None:
    """They have a limit of their own, and are computed when nobody else waits."""
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


def test_a_caller_who_left_gives_back_what_can_wait() -> None:
    """Its permit is free at once in that lane too."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
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

    with_batcher(fake, scenario, max_waiting_tokens=10, max_bulk_tokens=10)
    assert fake.seen == [1, 4, 5]


def test_a_wait_that_would_be_too_long_is_refused() -> None:
    """However few the tokens are: what counts is how long they take at the speed of late."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        batcher._admission.speed.note(20, 10)
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


def test_nothing_is_too_long_for_who_waits_for_nobody() -> None:
    """A request that alone takes longer than the limit is accepted when there is no other."""

    async def scenario(batcher: Batcher) -> None:
        batcher._admission.speed.note(20, 10)
        assert ends(await batcher.submit([text(1, 50)])) == [[1, 1]]

    with_batcher(FakeRuntime(), scenario, max_wait_s=1)


def test_refusals_are_counted_by_reason() -> None:
    """A full queue and too long a wait; what is wrong in itself is neither."""
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
    assert statistics.rejections == {"queue_full": 2}
    with_batcher(fake, slow, max_wait_s=0, statistics=statistics)
    assert statistics.rejections == {"queue_full": 2, "wait_too_long": 1}


def test_requests_that_are_still_being_read_count() -> None:
    """A crowd that comes at once would else find the door open, each of it, and be read in vain."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        assert batcher.retry_after_s(10**6) is None  # nothing is known yet
        for _ in range(200):
            await batcher.submit([text(1, 5)])
        batcher._admission.speed = Throughput(1)
        batcher._admission.speed.note(10, 1)  # two requests a second
        assert batcher.retry_after_s(0) is None
        assert batcher.retry_after_s(7) is None
        assert batcher.retry_after_s(9) is not None

    with_batcher(fake, scenario, max_wait_s=4)
