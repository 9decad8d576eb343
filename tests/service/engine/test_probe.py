"""Probe for a model that no longer responds."""

import asyncio

import numpy as np
import pytest

from fillmask.engine import probe
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import BatchOutputs, ModelPass
from fillmask.engine.probe import Probe
from fillmask.errors import NotReadyError
from tests.service.fake_runtime import BAD_ID, FakeRuntime, running_batcher, text

STUCK = "No test pass has finished within 0.05 s; restart the service."


@pytest.fixture
def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch is recent."""
    monkeypatch.setattr(probe, "RECENT_S", -1)


async def test_model_that_has_just_answered_is_not_probed() -> None:
    # Recent traffic proves that the model responds.
    fake = FakeRuntime()

    async with running_batcher(fake) as batcher:
        await batcher.submit([text(1)])
        assert await Probe(batcher, token_id=7).failure_reason() is None
    assert fake.seen == [1]


@pytest.mark.usefixtures("_silent")
async def test_silent_model_is_probed_once_for_all_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A later check counts the test pass as recent traffic.
    fake = FakeRuntime()

    async with running_batcher(fake) as batcher:
        asked = Probe(batcher, token_id=7)
        assert set(await asyncio.gather(asked.failure_reason(), asked.failure_reason())) == {None}
        monkeypatch.setattr(probe, "RECENT_S", 60)
        assert await asked.failure_reason() is None
    assert fake.seen == [7]


@pytest.mark.usefixtures("_silent")
async def test_model_that_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    # The probe succeeds again as soon as the model responds.
    monkeypatch.setattr(probe, "TIMEOUT_S", 0.05)
    fake = FakeRuntime()

    async with running_batcher(fake) as batcher:
        fake.go.clear()
        stuck = asyncio.create_task(batcher.submit([text(1)]))
        await fake.wait_until_at_work()
        asked = Probe(batcher, token_id=7)
        assert (await asked.failure_reason(), asked.last_failure) == (STUCK, STUCK)
        fake.go.set()
        await stuck
        monkeypatch.setattr(probe, "RECENT_S", 60)
        assert (await asked.failure_reason(), asked.last_failure) == (None, None)


@pytest.mark.usefixtures("_silent")
async def test_model_that_fails_or_whose_worker_has_failed() -> None:
    fake = FakeRuntime()
    async with running_batcher(fake) as batcher:
        failure = await Probe(batcher, token_id=BAD_ID).failure_reason()
        assert failure == "The model fails on a test pass of one token; restart the service."
        fake.fatal = True
        with pytest.raises(NotReadyError) as caught:
            await batcher.submit([text(1)])
        assert await Probe(batcher, token_id=7).failure_reason() == caught.value.text


@pytest.mark.usefixtures("_silent")
async def test_cancelled_caller_does_not_cancel_the_probe() -> None:
    # Other callers that wait for the same probe still get the result.
    fake = FakeRuntime()

    async with running_batcher(fake) as batcher:
        asked = Probe(batcher, token_id=7)
        fake.go.clear()
        leaver = asyncio.create_task(asked.failure_reason())
        other = asyncio.create_task(asked.failure_reason())
        await fake.wait_until_at_work()
        leaver.cancel()
        fake.go.set()
        assert await other is None


@pytest.mark.usefixtures("_silent")
async def test_model_without_fills_is_probed_with_labels() -> None:
    # The graph of a model without fills has no outputs for masks.
    passes: list[ModelPass] = []

    def run(batch: Batch) -> BatchOutputs:
        passes.extend(batch.passes)
        return BatchOutputs(pooled=np.zeros((len(batch.pooled_lengths), 2), np.float32))

    batcher = Batcher(run, 1, 192, 4096, 4096, 1e3, pytest.fail)
    try:
        assert await Probe(batcher, token_id=7, fills=False).failure_reason() is None
    finally:
        await batcher.close()
    [one] = passes
    assert (one.input_ids.tolist(), one.pooled_positions.tolist()) == ([7], [0])
    assert len(one.mask_positions) == 0
