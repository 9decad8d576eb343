"""Readiness probe of a model."""

import asyncio

import pytest

from service.engine import probe
from service.engine.batcher import Batcher
from service.engine.probe import Probe
from tests.service.fake_runtime import BAD_ID, FakeRuntime, text, with_batcher

STUCK = "The model has not answered for 0.05 s."


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "RECENT_S", 0.1)
    monkeypatch.setattr(probe, "TIMEOUT_S", 0.05)


def test_a_recent_batch_needs_no_test_pass() -> None:
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        await batcher.submit([text(1)])
        assert await Probe(batcher, token_id=7).failure_reason() is None

    with_batcher(fake, scenario)
    assert fake.seen == [1]


def test_concurrent_checks_share_one_test_pass() -> None:
    """Its result is valid for a while."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        await asyncio.sleep(0.11)
        checker = Probe(batcher, token_id=7)
        assert set(await asyncio.gather(checker.failure_reason(), checker.failure_reason())) == {
            None
        }
        assert await checker.failure_reason() is None

    with_batcher(fake, scenario)
    assert fake.seen == [7]


def test_a_stuck_model_fails_until_it_continues() -> None:
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        stuck = asyncio.create_task(batcher.submit([text(1)]))
        await fake.wait_until_at_work()
        await asyncio.sleep(0.11)
        checker = Probe(batcher, token_id=7)
        assert (await checker.failure_reason(), checker.last_failure) == (STUCK, STUCK)
        fake.go.set()
        await stuck
        assert (await checker.failure_reason(), checker.last_failure) == (None, None)

    with_batcher(fake, scenario)


def test_a_failing_model() -> None:
    """The workers are alive but cannot compute."""

    async def scenario(batcher: Batcher) -> None:
        await asyncio.sleep(0.11)
        failure = await Probe(batcher, token_id=BAD_ID).failure_reason()
        assert failure == "The model fails on a test pass of one token; restart the service."

    with_batcher(FakeRuntime(), scenario)


def test_a_cancelled_check_does_not_cancel_the_others() -> None:
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        await asyncio.sleep(0.11)
        checker = Probe(batcher, token_id=7)
        fake.go.clear()
        cancelled = asyncio.create_task(checker.failure_reason())
        other = asyncio.create_task(checker.failure_reason())
        await fake.wait_until_at_work()
        cancelled.cancel()
        fake.go.set()
        assert await other is None

    with_batcher(fake, scenario)
