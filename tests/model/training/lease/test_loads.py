"""Loads of training rows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from fillmask_model.data.corpus import SpecialTokens
from fillmask_model.training.lease.folders import Folder
from fillmask_model.training.lease.loads import PackFields, Rows, read_rows, write_loads
from tests.model.samples import small_config
from tests.model.training.lease.samples import random_rows, tiny_fields, tiny_plan


def write(
    directory: Path, training: Rows, held_out: Rows, fields: PackFields, **limits: int
) -> list[Folder]:
    sizes = {"first_bytes": 40_000, "load_bytes": 60_000} | limits
    return write_loads(directory, training, held_out, fields, report=lambda _: None, **sizes)


def test_all_rows_come_back_in_their_order(tokenizer: Tokenizer, tmp_path: Path) -> None:
    # Every load has the held-out rows, and no load exceeds its limit.
    fields = tiny_fields(tokenizer)
    training = random_rows(fields, {0: 9_000, 7: 501, 12: 3})
    held_out = random_rows(fields, {0: 3, 9: 2}, seed=1)
    written = write(tmp_path, training, held_out, fields)
    assert [load.directory.name for load in written] == [
        f"load_{number}" for number in range(1, len(written) + 1)
    ]
    assert len(written) > 3
    assert written[0].size <= 40_000
    assert all(40_000 < load.size <= 60_000 for load in written[1:-1])
    loads = [read_rows(Folder.open(load.directory, "load")) for load in written]
    for name, rows in training.items():
        together = np.concatenate([load[0][name] for load in loads])
        assert together.dtype == np.uint16
        assert np.array_equal(together, rows)
    for _, kept in loads:
        assert kept.keys() == held_out.keys()
        assert all(np.array_equal(kept[name], rows) for name, rows in held_out.items())


def test_ids_up_to_65535_survive(tokenizer: Tokenizer, tmp_path: Path) -> None:
    fields = tiny_fields(tokenizer)
    rows: Rows = {"packed": np.array([[0, 255, 256, 32_767, 32_768, 65_535]], np.uint16)}
    [load] = write(tmp_path, rows, {}, fields)
    assert read_rows(load)[0]["packed"].tolist() == rows["packed"].tolist()


@pytest.mark.parametrize("first_bytes", [-20_000, 20_000])
def test_a_limit_without_room_for_a_row_is_refused(
    tokenizer: Tokenizer, tmp_path: Path, first_bytes: int
) -> None:
    # A start that is larger than the limit leaves less than nothing for the first load.
    fields = tiny_fields(tokenizer)
    training, held_out = random_rows(fields, {0: 9}), random_rows(fields, {0: 900})
    with pytest.raises(ValueError, match="a load must have room for rows beside 14400 held-out"):
        write(tmp_path, training, held_out, fields, first_bytes=first_bytes)


def test_fields_identify_their_pack(tokenizer: Tokenizer) -> None:
    fields = tiny_fields(tokenizer)
    assert PackFields.from_dict(fields.to_dict()).pack == fields.pack
    for changes in ({"texts": "others"}, {"plan": tiny_plan(seed=1)}, {"tokenizer": "other"}):
        changed: dict[str, Any] = dict(changes)
        assert dataclasses.replace(fields, **changed).pack != fields.pack


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 65_537}, r"at most 65536 tokens, ids of two bytes \(got 65537\)"),
        ({"positions": "none", "rotary_base": 1e4}, r"a CUDA graph can contain \(got rotary_base"),
        ({"positions": "none", "relative_buckets": 8}, r"\(got relative_buckets\)"),
        ({"token_dropout_id": 4}, r"\(got token_dropout_id\)"),
        ({"max_positions": 15}, r"at most 15 tokens, the positions of the encoder \(got 16\)"),
    ],
)
def test_an_encoder_without_fixed_shapes_is_refused(
    tokenizer: Tokenizer, changes: dict[str, Any], message: str
) -> None:
    special = SpecialTokens.from_tokenizer(tokenizer)
    with pytest.raises(ValueError, match=message):
        PackFields.of(tiny_plan(), small_config(**({"num_heads": 2} | changes)), special, b"", "")
