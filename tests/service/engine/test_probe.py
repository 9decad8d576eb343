"""Whether a model still answers."""

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


def test_who_has_just_answered_is_not_asked() -> None:
    """Traffic is proof enough."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        await batcher.submit([text(1)])
        assert await Probe(batcher, token_id=7).failure_reason() is None

    with_batcher(fake, scenario)
    assert fake.seen == [1]


def test_who_has_been_silent_is_asked_once_by_all() -> None:
    """And answers; the answer counts for a while."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        await asyncio.sleep(0.11)
        asked = Probe(batcher, token_id=7)
        assert set(await asyncio.gather(asked.failure_reason(), asked.failure_reason())) == {None}
        assert await asked.failure_reason() is None

    with_batcher(fake, scenario)
    assert fake.seen == [7]


def test_a_model_that_is_stuck() -> None:
    """It is not ready, and is again when it goes on."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        fake.go.clear()
        stuck = asyncio.create_task(batcher.submit([text(1)]))
        await fake.wait_until_at_work()
        await asyncio.sleep(0.11)
        asked = Probe(batcher, token_id=7)
        assert (await asked.failure_reason(), asked.last_failure) == (STUCK, STUCK)
        fake.go.set()
        await stuck
        assert (await asked.failure_reason(), asked.last_failure) == (None, None)

    with_batcher(fake, scenario)


def test_a_model_that_fails() -> None:
    """A worker that lives and cannot compute is no use either."""

    async def scenario(batcher: Batcher) -> None:
        await asyncio.sleep(0.11)
        failure = await Probe(batcher, token_id=BAD_ID).failure_reason()
        assert failure == "The model fails on a test pass of one token; restart the service."

    with_batcher(FakeRuntime(), scenario)


def test_one_who_leaves_does_not_take_the_answer_along() -> None:
    """Others who asked at the same time still get it."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
        await asyncio.sleep(0.11)
        asked = Probe(batcher, token_id=7)
        fake.go.clear()
        leaver = asyncio.create_task(asked.failure_reason())
        other = asyncio.create_task(asked.failure_reason())
        await fake.wait_until_at_work()
        leaver.cancel()
        fake.go.set()
        assert await other is None

    with_batcher(fake, scenario)
