"""The arrays of two texts, from the contract of the served graph."""

import numpy as np

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass


def model_pass(ids: list[int], masks: list[int], top_k: int, targets: list[list[int]]) -> ModelPass:
    return ModelPass(np.array(ids), np.array(masks), top_k, np.array(targets))


def test_pack_of_two_texts() -> None:
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
