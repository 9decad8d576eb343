"""Batch: packing requests end to end, and giving each its own answer back."""

import numpy as np
import pytest

from service.engine.batch import Batch, BatchOutputs, ModelPass


def request(
    ids: list[int],
    masks: list[int],
    top_k: int = 1,
    targets: list[list[int]] | None = None,
) -> ModelPass:
    """A request from plain lists."""
    return ModelPass(
        input_ids=np.array(ids, dtype=np.int64),
        mask_positions=np.array(masks, dtype=np.int64),
        top_k=top_k,
        target_ids=np.array(targets or [[] for _ in masks], dtype=np.int64),
    )


def test_pack_of_two_texts() -> None:
    """Every array is what the contract of the served graph says, worked out by hand."""
    batch = Batch.pack(
        [
            request([10, 11], [1], top_k=2, targets=[[7]]),
            request([20, 21, 22], [0, 2], top_k=3, targets=[[8, 9], [9, 8]]),
        ]
    )
    assert batch.input_ids.tolist() == [10, 11, 20, 21, 22]
    assert batch.positions.tolist() == [0, 1, 0, 1, 2]
    # the longer text comes first; rows are 16 slots wide
    assert batch.pad_index.tolist() == [[2, 3, 4] + [0] * 13, [0, 1] + [0] * 14]
    assert batch.slot_texts.tolist() == [[1, 1, 1] + [-1] * 13, [0, 0] + [-1] * 14]
    assert batch.unpad_index.tolist() == [16, 17, 0, 1, 2]
    assert batch.query_index.tolist() == [[2, 4], [1, 0]]
    assert batch.query_texts.tolist() == [[1, 1], [0, -1]]
    assert batch.mask_slots.tolist() == [2, 0, 1]
    assert batch.top_k.tolist() == [3]
    assert batch.target_ids.tolist() == [[7, 0], [8, 9], [9, 8]]
    assert batch.tokens == 5


def test_pack_of_texts_that_share_a_row() -> None:
    """Their slots and masks carry their numbers; the second begins at the next multiple of 16."""
    batch = Batch.pack([request([1] * 20, [0]), request([2] * 3, [1]), request([3] * 2, [0, 1])])
    assert batch.slot_texts.tolist() == [
        [0] * 20 + [-1] * 12,
        [1] * 3 + [-1] * 13 + [2] * 2 + [-1] * 14,
    ]
    assert batch.query_index.tolist() == [[0, 0, 0], [21, 23, 24]]
    assert batch.query_texts.tolist() == [[0, -1, -1], [1, 2, 2]]
    assert batch.mask_slots.tolist() == [0, 3, 4, 5]


def test_pack_of_one_text_without_targets() -> None:
    """One row of at least two queries, and K is 0 when nobody asks for targets."""
    batch = Batch.pack([request([5, 6, 7], [1])])
    assert batch.pad_index.tolist() == [[0, 1, 2] + [0] * 13]
    assert batch.query_index.tolist() == [[1, 0]]
    assert batch.query_texts.tolist() == [[0, -1]]
    assert batch.mask_slots.tolist() == [0]
    assert batch.target_ids.shape == (1, 0)


def test_pack_gives_int64_everywhere() -> None:
    """The graph takes int64 only."""
    batch = Batch.pack([request([5, 6], [1]), request([5], [0])])
    for name in Batch.__dataclass_fields__:
        if name != "passes":
            assert getattr(batch, name).dtype == np.int64, name


@pytest.mark.parametrize("seed", range(20))
def test_indices_lead_back_to_the_requests(seed: int) -> None:
    """For random batches, padding, unpadding and queries find each request's own tokens."""
    rng = np.random.default_rng(seed)
    requests = []
    for _ in range(rng.integers(1, 9)):
        ids = rng.integers(0, 1000, rng.integers(1, 50)).tolist()
        masks = np.sort(rng.permutation(len(ids))[: rng.integers(1, len(ids) + 1)]).tolist()
        requests.append(request(ids, masks))
    batch = Batch.pack(requests)
    padded = batch.input_ids[batch.pad_index]
    for number, one in enumerate(requests):
        assert padded[batch.slot_texts == number].tolist() == one.input_ids.tolist()
        assert (batch.query_texts == number).sum() == len(one.mask_positions)
    assert padded.ravel()[batch.unpad_index].tolist() == batch.input_ids.tolist()
    masked = batch.input_ids[batch.query_index].ravel()[batch.mask_slots]
    expected = np.concatenate([one.input_ids[one.mask_positions] for one in requests])
    assert masked.tolist() == expected.tolist()


def test_split_gives_each_request_its_own_part() -> None:
    """Requests with different masks, top_k and targets get back exactly what they asked for."""
    first = request([1, 2], [1], top_k=1, targets=[[4, 5]])
    second = request([1, 2, 3], [0, 2], top_k=2)
    outputs = BatchOutputs(
        top_ids=np.array([[1, 2], [3, 4], [5, 6]]),
        top_log_probs=np.array([[-1, -2], [-3, -4], [-5, -6]], dtype=np.float32),
        target_log_probs=np.array([[-7, -8], [0, 0], [0, 0]], dtype=np.float32),
    )
    one, two = Batch.pack([first, second]).unpack(outputs)
    assert one.top_ids.tolist() == [[1]]
    assert one.top_log_probs.tolist() == [[-1]]
    assert one.target_log_probs.tolist() == [[-7, -8]]
    assert two.top_ids.tolist() == [[3, 4], [5, 6]]
    assert two.target_log_probs.shape == (2, 0)
