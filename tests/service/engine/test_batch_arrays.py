"""Packing of passes into a batch and unpacking of the batch's outputs."""

import numpy as np

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs, ModelPass


def model_pass(
    ids: list[int],
    masks: list[int],
    top_k: int = 1,
    targets: list[list[int]] | None = None,
) -> ModelPass:
    """Make a pass from plain lists."""
    return ModelPass(
        input_ids=np.array(ids, dtype=np.int64),
        mask_positions=np.array(masks, dtype=np.int64),
        top_k=top_k,
        target_ids=np.array(targets or [[] for _ in masks], dtype=np.int64),
    )


def test_pack_of_two_texts() -> None:
    # The expected arrays come from the contract of the served graph, not from the code.
    batch = Batch.pack(
        [
            model_pass([10, 11], [1], top_k=2, targets=[[7]]),
            model_pass([20, 21, 22], [0, 2], top_k=3, targets=[[8, 9], [9, 8]]),
        ]
    )
    assert batch.input_ids.tolist() == [10, 11, 20, 21, 22]
    assert batch.positions.tolist() == [0, 1, 0, 1, 2]
    # The longer text comes first. Rows are 16 slots wide.
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
    # The second text of a row starts at the next multiple of 16 slots.
    batch = Batch.pack(
        [model_pass([1] * 20, [0]), model_pass([2] * 3, [1]), model_pass([3] * 2, [0, 1])]
    )
    assert batch.slot_texts.tolist() == [
        [0] * 20 + [-1] * 12,
        [1] * 3 + [-1] * 13 + [2] * 2 + [-1] * 14,
    ]
    assert batch.query_index.tolist() == [[0, 0, 0], [21, 23, 24]]
    assert batch.query_texts.tolist() == [[0, -1, -1], [1, 2, 2]]
    assert batch.mask_slots.tolist() == [0, 3, 4, 5]


def test_pack_of_one_text_without_targets() -> None:
    # A row has at least two queries. The array of targets has no columns.
    batch = Batch.pack([model_pass([5, 6, 7], [1])])
    assert batch.pad_index.tolist() == [[0, 1, 2] + [0] * 13]
    assert batch.query_index.tolist() == [[1, 0]]
    assert batch.query_texts.tolist() == [[0, -1]]
    assert batch.mask_slots.tolist() == [0]
    assert batch.target_ids.shape == (1, 0)


def test_unpack_returns_the_outputs_of_each_pass() -> None:
    # Passes may differ in the number of masks, top_k and targets.
    first = model_pass([1, 2], [1], top_k=1, targets=[[4, 5]])
    second = model_pass([1, 2, 3], [0, 2], top_k=2)
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
