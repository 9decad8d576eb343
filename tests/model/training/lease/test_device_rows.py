"""Rows on the device and their order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from fillmask_model.training.lease.device_rows import DeviceRows
from fillmask_model.training.lease.loads import PackFields
from tests.model.training.lease.samples import random_rows, tiny_fields

CPU = torch.device("cpu")
COUNTS = {0: 21, 6: 5, 8: 7, 9: 3, 16: 3}  # batches of 4 packed rows, 4 texts of 8, 2 texts of 16


def device_rows(fields: PackFields) -> DeviceRows:
    """Return the rows of two loads."""
    counts = {0: 10, 6: 2, 8: 4}
    rest = {length: count - counts.get(length, 0) for length, count in COUNTS.items()}
    loads = [random_rows(fields, counts), random_rows(fields, rest, seed=1)]
    return DeviceRows(loads, fields, CPU)


def test_short_texts_are_padded_to_the_next_length(tokenizer: Tokenizer) -> None:
    fields = tiny_fields(tokenizer)
    groups = device_rows(fields).groups
    shapes = {length: tuple(group.ids.shape) for length, group in groups.items()}
    assert shapes == {0: (21, 16), 8: (12, 8), 16: (6, 16)}
    assert {length: group.batch_rows for length, group in groups.items()} == {0: 4, 8: 4, 16: 2}
    assert {length: group.padded for length, group in groups.items()} == {
        0: False,
        8: True,
        16: True,
    }
    lengths = Counter((groups[8].ids != fields.pad).sum(dim=1).tolist())
    assert lengths == {6: 5, 8: 7}
    assert groups[8].tokens == pytest.approx(4 * (5 * 6 + 7 * 8) / 12)
    # a third of the ordinary tokens between the two special ones
    assert groups[0].selected == round(0.3 * 14 * 4)


def test_ids_above_int16_become_int32(tokenizer: Tokenizer) -> None:
    fields = tiny_fields(tokenizer)
    wide = replace(fields, encoder=replace(fields.encoder, vocab_size=40_000))
    rows = random_rows(fields, {0: 4, 8: 4})
    rows["packed"][0, 1] = 39_999
    assert device_rows(fields).groups[0].ids.dtype == torch.int16
    ids = DeviceRows([rows], wide, CPU).groups[0].ids
    assert ids.dtype == torch.int32
    assert np.array_equal(ids.numpy(), rows["packed"])


def test_an_epoch_has_every_whole_batch_once(tokenizer: Tokenizer) -> None:
    # Packed rows have epochs of 5 batches, short texts of 3 batches of 8 and 3 of 16 tokens.
    rows = device_rows(tiny_fields(tokenizer))
    packed = [rows.indices(number, 0)[0].tolist() for number in range(10)]
    for epoch in (packed[:5], packed[5:]):
        taken = [index for batch in epoch for index in batch]
        assert len(set(taken)) == len(taken) == 20
    assert packed[:5] != packed[5:]
    for start in (0, 6):
        texts = [(rows.length(n, 0), rows.indices(n, 0)[1]) for n in range(start, start + 6)]
        assert Counter(length for length, _ in texts) == {8: 3, 16: 3}
        for length in (8, 16):
            taken = [i for at, batch in texts if at == length and batch is not None for i in batch]
            assert len({int(i) for i in taken}) == len(taken) == {8: 12, 16: 6}[length]


def test_the_order_depends_on_the_number_alone(tokenizer: Tokenizer) -> None:
    # A step draws the same rows in a process that starts with it.
    fields = tiny_fields(tokenizer)
    first, second = device_rows(fields), device_rows(fields)
    for number in range(9):
        first.indices(number, 0)
    for number in (8, 2):
        for one, other in zip(first.indices(number, 0), second.indices(number, 0), strict=True):
            assert one is not None
            assert other is not None
            assert torch.equal(one, other)
        assert first.length(number, 0) == second.length(number, 0)


def test_new_rows_begin_an_epoch(tokenizer: Tokenizer) -> None:
    # The order counts from the step at which the rows changed, with another shuffle.
    rows = device_rows(tiny_fields(tokenizer))
    packed = [rows.indices(7 + number, 7)[0].tolist() for number in range(5)]
    assert len({i for batch in packed for i in batch}) == 20
    assert packed != [rows.indices(number, 0)[0].tolist() for number in range(5)]


def test_a_plan_may_have_no_short_texts(tokenizer: Tokenizer) -> None:
    rows = device_rows(tiny_fields(tokenizer, short_tokens=0))
    assert list(rows.groups) == [0]
    assert rows.length(3, 0) == 0
    assert rows.indices(3, 0)[1] is None


def test_too_few_rows_are_refused(tokenizer: Tokenizer) -> None:
    fields = tiny_fields(tokenizer)
    with pytest.raises(ValueError, match=r"packed rows must fill a batch of 4 \(got 3 rows\)"):
        DeviceRows([random_rows(fields, {0: 3, 8: 9})], fields, CPU)
    with pytest.raises(ValueError, match="fill a batch of 32 tokens of one length"):
        DeviceRows([random_rows(fields, {0: 4, 8: 3, 16: 1})], fields, CPU)


def test_rows_without_enough_ordinary_tokens_are_refused(tokenizer: Tokenizer) -> None:
    # A batch could otherwise select special tokens.
    fields = tiny_fields(tokenizer, select_rate=0.5)
    rows = random_rows(fields, {0: 16, 8: 4})
    rows["packed"][:4, 2:] = fields.special[0]
    with pytest.raises(ValueError, match=r"must have at least 22 .*\(got 4 in the poorest rows\)"):
        DeviceRows([rows], fields, CPU)
