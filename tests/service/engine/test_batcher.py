"""Batcher with a fake runtime, which returns the ids of a text as its fills."""

import asyncio
import contextlib
import threading

import pytest

from fillmask.engine.admission import QueueLoad
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs
from fillmask.engine.request_queue import PendingRequest
from fillmask.errors import NotReadyError
from fillmask.observability.metrics import Metrics
from tests.service.fake_runtime import (
    BAD_ID,
    FakeRuntime,
    FatalError,
    ends,
    running_batcher,
    text,
)
from tests.service.scrape import rendered, value


async def test_batches_are_formed_by_budget_in_order_of_arrival() -> None:
    # Requests run in order of arrival. A text above the token budget runs alone.
    fake = FakeRuntime()

    async with running_batcher(fake, max_batch_tokens=6) as batcher:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1)]))
        await fake.wait_until_at_work()
        rest = asyncio.create_task(batcher.submit([text(2, n) for n in (3, 3, 3, 20, 2)]))
        await asyncio.sleep(0)
        fake.go.set()
        await asyncio.gather(first, rest)
    assert fake.batches == [[2], [3, 3], [3], [20], [2]]


async def test_workers_compute_at_the_same_time() -> None:
    fake = FakeRuntime()

    async with running_batcher(fake, workers=2) as batcher:
        fake.go.clear()
        asks = [asyncio.create_task(batcher.submit([text(i, 6)])) for i in range(2)]
        await fake.wait_until_at_work()
        await fake.wait_until_at_work()
        fake.go.set()
        await asyncio.gather(*asks)


async def test_bad_request_does_not_fail_its_neighbours() -> None:
    # After a batch fails, each of its requests runs again alone.
    fake = FakeRuntime()

    failures: list[str] = []
    async with running_batcher(fake, failures=failures) as batcher:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1)]))
        await fake.wait_until_at_work()
        asks = [asyncio.create_task(batcher.submit([text(i)])) for i in (2, BAD_ID, 3)]
        await asyncio.sleep(0)
        fake.go.set()
        await first
        good, bad, other = await asyncio.gather(*asks, return_exceptions=True)
        assert not isinstance(good, BaseException)
        assert not isinstance(other, BaseException)
        assert ends(good) == [[2, 1]]
        assert ends(other) == [[3, 1]]
        assert isinstance(bad, ValueError)
        assert ends(await batcher.submit([text(4)])) == [[4, 1]]
    assert failures == []
    assert fake.batches == [[2], [2, 2, 2], [2], [2], [2], [2]]


async def test_bad_text_fails_its_caller_and_frees_the_rest() -> None:
    # The caller gets the error immediately. The caller's remaining texts do not run.
    fake = FakeRuntime()
    fake.stop_after_bad = True

    async with running_batcher(fake, max_waiting_tokens=310) as batcher:
        with pytest.raises(ValueError, match="a bad id"):
            await batcher.submit([text(BAD_ID, 6), *(text(i, 6) for i in range(50))])
        later = asyncio.create_task(batcher.submit([text(4, 300)]))  # fits beside one text
        await asyncio.sleep(0)
        fake.go.set()
        assert ends(await later) == [[4, 1]]
    assert set(fake.seen) <= {BAD_ID, 0, 4}  # 0 if the batch of text 0 had begun


async def test_death_of_a_worker_fails_all_waiting_callers() -> None:
    # Later callers get the same error.
    fake = FakeRuntime()

    failures: list[str] = []
    async with running_batcher(fake, failures=failures) as batcher:
        fake.go.clear()
        fake.fatal = True
        asks = [asyncio.create_task(batcher.submit([text(i, 6)])) for i in range(5)]
        await fake.wait_until_at_work()
        fake.go.set()
        for result in await asyncio.gather(*asks, return_exceptions=True):
            assert isinstance(result, NotReadyError)
            assert result.text == "The service has failed; restart it."
        with pytest.raises(NotReadyError, match="has failed; restart it"):
            await batcher.submit([text(1)])
    assert failures == ["The service has failed; restart it."]


async def test_death_of_a_worker_gives_back_all_tokens() -> None:
    # The other workers still compute their batches.
    fake = FakeRuntime()
    dies = threading.Event()

    def run(batch: Batch) -> BatchOutputs:
        if BAD_ID in batch.input_ids:
            assert dies.wait(10)
            raise FatalError
        return fake.run(batch)

    async with running_batcher(fake, workers=2, run=run) as batcher:
        fake.go.clear()
        other = asyncio.create_task(batcher.submit([text(1, 6)]))
        await fake.wait_until_at_work()
        failing = [
            asyncio.create_task(batcher.submit([text(BAD_ID, 6)])),
            asyncio.create_task(batcher.submit([text(2, 6)])),
            asyncio.create_task(batcher.submit([text(3, 6), text(4, 6)], bulk=True)),
        ]
        await asyncio.sleep(0)
        dies.set()
        for result in await asyncio.gather(*failing, return_exceptions=True):
            assert isinstance(result, NotReadyError)
        assert batcher.accepted_tokens == 6
        fake.go.set()
        assert ends(await other) == [[1, 1]]
        assert batcher.load.waiting_tokens == {"interactive": 0, "bulk": 0}


async def test_close_answers_accepted_requests() -> None:
    fake = FakeRuntime()
    others = set(threading.enumerate())  # a model of another test may be open

    async with running_batcher(fake, workers=2) as batcher:
        fake.go.clear()
        asks = [asyncio.create_task(batcher.submit([text(i, 6)])) for i in range(5)]
        await fake.wait_until_at_work()
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(NotReadyError, match="shutting down"):
            await batcher.submit([text(9)])
        fake.go.set()
        await closing
        assert [ends(fills) for fills in await asyncio.gather(*asks)] == [
            [[i, 1]] for i in range(5)
        ]
    assert not [
        thread
        for thread in set(threading.enumerate()) - others
        if thread.name.startswith("fillmask-worker")
    ]


@pytest.mark.parametrize(
    ("threads", "bulk", "first_id"),
    [(1, False, 1), (2, False, 1), (1, True, 1), (1, False, BAD_ID)],
)
async def test_good_interactive_batches_on_one_thread_count_in_the_throughput(
    threads: int, first_id: int, *, bulk: bool
) -> None:
    # The others may cost more per token, be faster than those under load, or end early.
    fake, metrics = FakeRuntime(), Metrics()
    fake.threads = threads
    async with running_batcher(fake, metrics=metrics.for_model("m")) as batcher:
        with contextlib.suppress(ValueError):
            await batcher.submit([text(first_id, 6)], bulk=bulk)
        counts = (threads, bulk, first_id) == (1, False, 1)
        assert (batcher.load.tokens_per_s is not None) == counts
    if first_id != BAD_ID:
        assert value(rendered(metrics), "fillmask_batch_threads_sum", model="m") == threads


async def test_batches_are_counted() -> None:
    # Failed batches have a separate counter.
    fake, metrics = FakeRuntime(), Metrics()

    async with running_batcher(fake, metrics=metrics.for_model("m")) as batcher:
        fake.go.clear()
        first = asyncio.create_task(batcher.submit([text(1, 3)]))
        await fake.wait_until_at_work()
        others = [asyncio.create_task(batcher.submit([text(i)])) for i in (2, BAD_ID)]
        await asyncio.sleep(0.05)
        fake.go.set()
        await asyncio.gather(first, *others, return_exceptions=True)
    assert fake.batches == [[3], [2, 2], [2], [2]]
    found = rendered(metrics)
    # the batch of both, then the bad text alone
    assert value(found, "fillmask_failed_batches_total", model="m") == 2
    assert value(found, "fillmask_passes_total", model="m") == 2
    assert value(found, "fillmask_batch_tokens_sum", model="m") == 5
    assert value(found, "fillmask_batch_sequences_sum", model="m") == 2
    assert value(found, "fillmask_queue_seconds_count", model="m") == 2
    assert value(found, "fillmask_attention_slots_total", model="m") == 2 * 16
    assert value(found, "fillmask_queue_seconds_sum", model="m") >= 0.05
    assert value(found, "fillmask_compute_seconds_sum", model="m") >= 0.05


async def test_load_of_an_idle_batcher() -> None:
    async with running_batcher(FakeRuntime(), workers=2, max_bulk_tokens=500) as batcher:
        assert batcher.load == QueueLoad(
            {"interactive": 0, "bulk": 0}, {"interactive": 1000, "bulk": 500}, None, 2
        )


async def test_a_request_runs_from_its_first_batch_to_its_last() -> None:
    # Several workers may record its batches in any order.
    request = PendingRequest(asyncio.get_running_loop().create_future(), 3)
    for started_s, ended_s in ((3, 4), (1, 7), (2, 5)):
        request.record_run(started_s, ended_s)
    assert (request.started_s, request.ended_s) == (1, 7)
