"""Arrays of generated batches, compared with each text alone, and batches of generated queues."""

import math
from collections import deque
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fillmask.arrays import IntArray
from fillmask.engine.batch_arrays import ALIGNMENT, MIN_QUERIES, Batch, RowPacking
from fillmask.engine.passes import BatchOutputs, ModelPass
from fillmask.engine.request_queue import (
    BATCHES_PER_BULK_BATCH,
    LaneQueue,
    batch_budget,
    exceeds_interactive_lane,
)


@st.composite
def passes(draw: st.DrawFn) -> ModelPass:
    """Draw a pass with masks, targets and pooled tokens, of which each may be absent."""
    tokens = draw(st.integers(1, 40))
    places = st.sets(st.integers(0, tokens - 1), max_size=tokens).map(sorted)
    masks, width = draw(places), draw(st.integers(0, 3))
    ids = st.integers(0, 99)
    return ModelPass(
        input_ids=_array(draw(st.lists(ids, min_size=tokens, max_size=tokens))),
        mask_positions=_array(masks),
        top_k=draw(st.integers(1, 4)),
        target_ids=_array(
            draw(st.lists(ids, min_size=len(masks) * width, max_size=len(masks) * width))
        ).reshape(len(masks), width),
        token_types=_array([place % 2 for place in range(tokens)]) if draw(st.booleans()) else None,
        pooled_positions=_array(draw(places)) if draw(st.booleans()) else _array([]),
    )


def _array(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


BATCHES = st.lists(passes(), min_size=1, max_size=8)


def attention_of(batch: Batch) -> IntArray:
    """Return (R, R), true where a token sees another, from the arrays that the graph reads."""
    seen = np.zeros((batch.tokens, batch.tokens), dtype=bool)
    for row_indices, row_texts in zip(batch.pad_index, batch.slot_texts, strict=True):
        used = row_texts >= 0
        same_text = row_texts[used][:, None] == row_texts[used][None, :]
        seen[np.ix_(row_indices[used], row_indices[used])] |= same_text
    return seen


@given(BATCHES)
def test_a_token_sees_exactly_the_tokens_of_its_text(drawn: list[ModelPass]) -> None:
    batch = Batch.pack(drawn)
    names = [name for name in Batch.__dataclass_fields__ if name != "passes"]
    assert {getattr(batch, name).dtype for name in (*names, "token_types")} == {np.dtype(np.int64)}
    owners = [text for text, one in enumerate(drawn) for _ in one.input_ids]
    assert attention_of(batch).tolist() == [[a == b for b in owners] for a in owners]
    # each token has one slot, and a token and its slot lead to each other
    assert (batch.slot_texts >= 0).sum() == batch.tokens
    assert batch.pad_index.ravel()[batch.unpad_index].tolist() == list(range(batch.tokens))
    # each read token sees its own text, and no unused query sees any
    texts, indices = batch.query_texts, batch.query_index
    assert (texts[texts >= 0] == np.array(owners)[indices[texts >= 0]]).all()
    assert (texts >= 0).sum() == sum(
        len(one.mask_positions) + len(one.pooled_positions) for one in drawn
    )
    rows_of_texts = [set(row[row >= 0].tolist()) for row in batch.slot_texts]
    rows_of_queries = [set(row[row >= 0].tolist()) for row in texts]
    assert all(some <= all_ for some, all_ in zip(rows_of_queries, rows_of_texts, strict=True))


@given(BATCHES)
def test_texts_start_at_multiples_of_a_vector(drawn: list[ModelPass]) -> None:
    # Only then a text has the same bits as alone. A row is as wide as the longest text needs.
    batch = Batch.pack(drawn)
    longest = max(one.tokens for one in drawn)
    rows, width = batch.pad_index.shape
    assert width == next(w for w in range(longest, longest + ALIGNMENT) if w % ALIGNMENT == 0)
    assert batch.query_index.shape[1] >= MIN_QUERIES
    for text, one in enumerate(drawn):
        [(row, first), *_] = np.argwhere(batch.slot_texts == text).tolist()
        slots = np.arange(first, first + one.tokens)
        assert first % ALIGNMENT == 0
        assert (batch.slot_texts[row, slots] == text).all()
        assert (batch.slot_texts == text).sum() == one.tokens
    # first fit never leaves two rows that fit into one
    filled = [
        sum(ALIGNMENT * math.ceil(drawn[text].tokens / ALIGNMENT) for text in set(row) - {-1})
        for row in batch.slot_texts.tolist()
    ]
    assert all(a + b > width for i, a in enumerate(filled) for b in filled[:i])
    assert rows == len(filled)


def test_the_longest_text_goes_first() -> None:
    # 60 slots alone, then 20 and 18 in one row, then 10 alone
    packing = RowPacking.first_fit([18, 60, 10, 20])
    assert packing == RowPacking(rows=(1, 0, 2, 1), offsets=(32, 0, 0, 0), count=3, width=64)


def run_graph(batch: Batch) -> BatchOutputs:
    """Compute outputs that reveal their text, token and target from the batch's arrays alone."""
    tokens, masks = batch.query_index.ravel(), batch.mask_slots
    # what each mask sees: the ids, types and positions of its text
    seen = attention_of(batch)[tokens[masks]]
    features = batch.input_ids * 10_000 + batch.positions * 10 + batch.token_types
    sums = (seen * features[None, :]).sum(axis=1) * 100 + batch.positions[tokens[masks]]
    ranks = np.arange(int(batch.top_k[0]))
    pooled = batch.input_ids[tokens[batch.pooled_slots]]
    logits = np.zeros((len(batch.pooled_lengths), 3), dtype=np.float32)
    np.add.at(logits, batch.pooled_texts, np.stack([pooled, pooled**2, 0 * pooled], axis=1))
    logits[:, 2] = batch.pooled_lengths
    return BatchOutputs(
        top_ids=sums[:, None] * 10 + ranks,
        top_log_probs=-(sums[:, None] * 10.0 + ranks).astype(np.float64),
        target_log_probs=(sums[:, None] + batch.target_ids).astype(np.float64),
        pooled=logits,
    )


@given(BATCHES)
def test_outputs_of_a_batch_are_those_of_each_text_alone(drawn: list[ModelPass]) -> None:
    batch = Batch.pack(drawn)
    together = batch.unpack(run_graph(batch))
    assert [id(one) for one in batch.passes] == [id(one) for one in drawn]
    for one, found in zip(drawn, together, strict=True):
        types = np.zeros(one.tokens) if one.token_types is None else one.token_types
        own = int((one.input_ids * 10_000 + np.arange(one.tokens) * 10 + types).sum()) * 100
        sums = own + one.mask_positions
        top_ids = sums[:, None] * 10 + np.arange(one.top_k)
        assert found.top_ids.tolist() == top_ids.tolist()
        assert found.top_log_probs.tolist() == (-1.0 * top_ids).tolist()
        assert found.target_log_probs.tolist() == (sums[:, None] + one.target_ids).tolist()
        pooled = one.input_ids[one.pooled_positions].astype(np.float64)
        if not len(pooled):
            assert found.pooled is None
        else:
            assert found.pooled.tolist() == [pooled.sum(), (pooled**2).sum(), len(pooled)]


@given(st.integers(1, 10_000), st.integers(1, 64), st.integers(1, 512))
def test_workers_share_a_long_queue(unanswered: int, workers: int, max_batch: int) -> None:
    # the smallest budget with which one batch of each worker is enough, up to the maximum
    budget = batch_budget(unanswered, workers, max_batch)
    enough = [tokens for tokens in range(1, max_batch) if tokens * workers >= unanswered]
    assert budget == min(enough, default=max_batch)


Item = tuple[int, bool, int]  # number, bulk, tokens
BULK = st.booleans()
STEPS = st.lists(
    st.tuples(st.just("extend"), BULK, st.integers(0, 40), st.integers(1, 5))
    | st.tuples(st.just("next"), st.integers(0, 20), st.integers(1, 10))
    | st.tuples(st.just("remove"), st.integers(2, 4)),
    max_size=30,
)


@given(STEPS)
def test_queue_is_fair_and_keeps_its_order(steps: list[tuple[Any, ...]]) -> None:
    queue: LaneQueue[Item] = LaneQueue(lambda item: item[2])
    lanes: dict[bool, deque[Item]] = {False: deque(), True: deque()}
    number = since_bulk = 0  # items, and batches since the last bulk batch
    waits = 0  # batches that have passed over a bulk item
    for kind, *arguments in steps:
        if kind == "extend":
            bulk, count, tokens = arguments
            items = [(i, bulk, tokens + i % 3) for i in range(number, number + count)]
            number += count
            queue.extend(items, bulk=bulk)
            lanes[bulk].extend(items)
        elif kind == "remove":
            [divisor] = arguments
            unwanted = [i for lane in lanes.values() for i in lane if i[0] % divisor == 0]
            assert queue.remove(unwanted.__contains__) == unwanted
            for lane in lanes.values():
                for item in unwanted:
                    if item in lane:
                        lane.remove(item)
        else:
            budget, times = arguments
            for _ in range(times):
                both = all(lanes.values())
                batch = queue.next_batch(budget)
                assert bool(batch) == any(lanes.values())
                bulk = bool(batch) and batch[0][1]
                lane = lanes[bulk]
                assert batch == [lane.popleft() for _ in batch]  # the oldest items of one lane
                tokens = sum(item[2] for item in batch)
                assert len(batch) <= 1 or tokens <= budget
                assert not lane or tokens + lane[0][2] > budget
                if both:  # one in eight is bulk
                    assert since_bulk >= BATCHES_PER_BULK_BATCH - 1 or not bulk
                    assert waits < BATCHES_PER_BULK_BATCH - 1 or bulk
                since_bulk = 0 if bulk else since_bulk + 1
                waits = waits + 1 if lanes[True] and not bulk else 0
        assert bool(queue) == any(lanes.values())


def test_later_parts_of_a_request_go_before_the_requests_after_it() -> None:
    queue: LaneQueue[int] = LaneQueue(lambda _: 1)
    queue.extend([1, 5, 7], bulk=True)
    queue.extend([3, 3], bulk=True, before=lambda other: other > 3)
    assert queue.next_batch(10) == [1, 3, 3, 5, 7]


def test_a_request_of_eight_full_batches_is_interactive() -> None:
    # docs/filling.md states the limit.
    assert not exceeds_interactive_lane(8 * 100, 100)
    assert exceeds_interactive_lane(8 * 100 + 1, 100)
