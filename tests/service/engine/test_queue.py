"""Pending requests, and the two lanes of the queue."""

import asyncio

import pytest

from service.engine.batch import PassOutputs
from service.engine.queue import BATCHES_PER_BULK_BATCH, LaneQueue, PendingRequest
from tests.service.fake_runtime import text


def outputs() -> PassOutputs:
    """Make outputs that are equal to no other."""
    ids = text(1).input_ids[None, :]
    return PassOutputs(ids, ids.astype("float32"), ids.astype("float32"))


def test_results_are_in_the_order_of_the_passes() -> None:
    """The passes may be computed in any order."""

    async def scenario() -> None:
        first, second = outputs(), outputs()
        pending = PendingRequest(asyncio.get_running_loop().create_future(), 2)
        pending.set_result(1, second)
        assert not pending.future.done()
        pending.set_result(0, first)
        assert await pending.future == [first, second]

    asyncio.run(scenario())


def test_the_first_failure_is_the_result() -> None:
    """Later results are ignored."""

    async def scenario() -> None:
        pending = PendingRequest(asyncio.get_running_loop().create_future(), 2)
        pending.set_result(1, ValueError("one"))
        pending.set_result(0, KeyError("two"))
        with pytest.raises(ValueError, match="one"):
            await pending.future

    asyncio.run(scenario())


def lane_queue(interactive: int = 0, bulk: int = 0, tokens: int = 2) -> LaneQueue[str]:
    """Make a queue with this many items in each lane."""
    queue: LaneQueue[str] = LaneQueue(lambda _: tokens)
    queue.extend((f"f{i}" for i in range(interactive)), bulk=False)
    queue.extend((f"s{i}" for i in range(bulk)), bulk=True)
    return queue


def test_interactive_items_go_first() -> None:
    """The order of arrival does not matter; a batch has items of one lane."""
    lanes = lane_queue(interactive=1, bulk=3)
    assert lanes.next_batch(4) == ["f0"]
    assert lanes.next_batch(4) == ["s0", "s1"]
    lanes.extend(["f1", "f2", "f3"], bulk=False)
    assert lanes.next_batch(4) == ["f1", "f2"]
    assert lanes.next_batch(4) == ["f3"]
    assert lanes.next_batch(4) == ["s2"]
    assert not lanes
    assert lanes.next_batch(4) == []


def test_bulk_items_are_not_starved() -> None:
    """Every eighth batch is a bulk batch, even if the interactive lane is never empty."""
    lanes = lane_queue(interactive=50, bulk=3)
    taken = [lanes.next_batch(2)[0] for _ in range(3 * BATCHES_PER_BULK_BATCH)]
    assert [i for i, item in enumerate(taken) if item.startswith("s")] == [
        BATCHES_PER_BULK_BATCH * turn - 1 for turn in (1, 2, 3)
    ]


def test_an_item_above_the_budget_is_a_batch_of_its_own() -> None:
    lanes = lane_queue(interactive=2, bulk=2, tokens=9)
    assert [lanes.next_batch(5) for _ in range(4)] == [["f0"], ["f1"], ["s0"], ["s1"]]


def test_items_are_removed_from_both_lanes() -> None:
    """The others keep their order."""
    lanes = lane_queue(interactive=3, bulk=3)
    assert lanes.remove(lambda item: item.endswith("1")) == ["f1", "s1"]
    assert lanes.next_batch(100) == ["f0", "f2"]
    assert lanes.next_batch(100) == ["s0", "s2"]
