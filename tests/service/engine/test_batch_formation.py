"""Batch formation: interactive items go first, but bulk items still get a turn."""

from fillmask.engine.batch_formation import (
    BATCHES_PER_BULK_BATCH,
    LaneQueue,
    exceeds_interactive_lane,
)


def waiting(interactive: int = 0, bulk: int = 0, tokens: int = 2) -> LaneQueue[str]:
    """Return a queue with items in each lane."""
    made: LaneQueue[str] = LaneQueue(lambda _: tokens)
    made.extend((f"f{i}" for i in range(interactive)), bulk=False)
    made.extend((f"s{i}" for i in range(bulk)), bulk=True)
    return made


def test_interactive_items_go_first() -> None:
    # All items of a batch come from one lane.
    lanes = waiting(interactive=1, bulk=3)
    assert lanes.next_batch(4) == ["f0"]
    assert lanes.next_batch(4) == ["s0", "s1"]
    lanes.extend(["f1", "f2", "f3"], bulk=False)
    assert lanes.next_batch(4) == ["f1", "f2"]
    assert lanes.next_batch(4) == ["f3"]
    assert lanes.next_batch(4) == ["s2"]
    assert not lanes
    assert lanes.next_batch(4) == []


def test_bulk_items_get_a_turn() -> None:
    # One batch in eight is bulk, even if the interactive lane is never empty.
    lanes = waiting(interactive=50, bulk=3)
    taken = [lanes.next_batch(2)[0] for _ in range(3 * BATCHES_PER_BULK_BATCH)]
    assert [i for i, item in enumerate(taken) if item.startswith("s")] == [
        BATCHES_PER_BULK_BATCH * turn - 1 for turn in (1, 2, 3)
    ]


def test_an_item_above_the_budget_is_taken_alone() -> None:
    lanes = waiting(interactive=2, bulk=2, tokens=9)
    assert [lanes.next_batch(5) for _ in range(4)] == [["f0"], ["f1"], ["s0"], ["s1"]]


def test_items_are_removed_from_both_lanes() -> None:
    # The remaining items keep their order.
    lanes = waiting(interactive=3, bulk=3)
    assert lanes.remove(lambda item: item.endswith("1")) == ["f1", "s1"]
    assert lanes.next_batch(100) == ["f0", "f2"]
    assert lanes.next_batch(100) == ["s0", "s2"]


def test_a_request_of_eight_full_batches_is_interactive() -> None:
    # docs/filling.md states the limit.
    assert not exceeds_interactive_lane(8 * 100, 100)
    assert exceeds_interactive_lane(8 * 100 + 1, 100)
