"""Requests that submit their passes in several parts, such as texts with different options."""

import asyncio

import pytest

from fillmask.engine.batcher import Batcher
from fillmask.engine.runtime import Runtime
from fillmask.errors import OverloadedError
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from tests.service.fake_runtime import FakeRuntime, running_batcher, text
from tests.service.tiny import Tiny
from tests.service.tiny_calls import make_pipeline

JOINT = FillMaskParameters(strategy="joint", top_k=2)


def slow_batcher(tiny: Tiny) -> Batcher:
    """Return a batcher that estimates a second per token and accepts a wait of 2 s."""
    runtime = Runtime(tiny.path / "model.onnx")
    batcher = Batcher(runtime.run, 1, 64, 1000, 1000, 2.0, pytest.fail)
    batcher.record_throughput(64, 64.0)
    return batcher


@pytest.mark.parametrize(
    "options",
    [
        [
            FillMaskParameters(top_k=1),
            FillMaskParameters(top_k=2),
            FillMaskParameters(targets=("dog",)),
        ],
        [JOINT, JOINT, JOINT],
        [FillMaskParameters(granularity="word"), JOINT, FillMaskParameters(top_k=1)],
    ],
)
async def test_an_idle_service_accepts_all_parts_of_a_request(
    tiny: Tiny, options: list[FillMaskParameters]
) -> None:
    # Found by the simulation: the parts that came first made the rest wait too long.
    batcher = slow_batcher(tiny)
    try:
        texts = ["the [MASK] is [MASK]"] * len(options)
        assert all(await make_pipeline(tiny, batcher).compute(texts, options))
        assert batcher.accepted_tokens == 0
    finally:
        await batcher.close()


async def test_all_parts_of_a_long_request_wait_in_the_bulk_lane() -> None:
    # Each part alone would be short enough for the interactive lane.
    fake = FakeRuntime()
    async with running_batcher(fake) as batcher:
        fake.go.clear()
        parts = batcher.parts_of(1000)
        running = [asyncio.create_task(batcher.submit([text(i)], parts=parts)) for i in (1, 2)]
        await asyncio.sleep(0)
        assert batcher.load.waiting_tokens == {"interactive": 0, "bulk": 4}
        fake.go.set()
        await asyncio.gather(*running)


async def test_another_request_is_still_rejected(tiny: Tiny) -> None:
    batcher = slow_batcher(tiny)
    pipeline = make_pipeline(tiny, batcher)
    try:
        waiting = pipeline.compute(["the [MASK]"] * 8, [FillMaskParameters()] * 8)
        running = asyncio.create_task(waiting)
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await pipeline.compute(["the [MASK]"], [FillMaskParameters()])
        await running
    finally:
        await batcher.close()
