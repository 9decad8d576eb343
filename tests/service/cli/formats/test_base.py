"""Slices of rows, trailing blank rows, and conversion of values to JSON."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import (
    BLOCK_ROWS,
    as_json,
    drop_trailing_blanks,
    row_label,
    slice_batches,
)
from tests.service.cli.command_line import dice


@pytest.mark.parametrize("sizes", [[], [1], [3, 1, 5], [BLOCK_ROWS * 2 + 1, 2], [0, 4, 0]])
def test_slice_batches_yields_each_item_once(sizes: list[int]) -> None:
    total = sum(sizes)
    items = list(range(total))
    batches = [items[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]
    bounds = {0, 1, 2, total // 2, max(0, total - 1), total}
    for start in bounds:
        for stop in (*bounds, None):
            blocks = list(slice_batches(batches, start, stop))
            assert [item for _, block in blocks for item in block] == items[start:stop]
            assert all(block[0] == first for first, block in blocks)
            assert all(len(block) <= BLOCK_ROWS for _, block in blocks)


def test_slice_batches_stops_reading_at_the_stop() -> None:
    # The rest of a file may be long or damaged.
    def batches() -> Iterator[list[int]]:
        yield [0, 1]
        raise AssertionError

    assert list(slice_batches(batches(), 0, 2)) == [(0, [0, 1])]


def test_values_as_json() -> None:
    # Values without a JSON type have a fixed representation, such as base64 for bytes.
    assert as_json({"a": [1, 2.5, None, True, "é"]}) == '{"a":[1,2.5,null,true,"é"]}'.encode()
    assert as_json(float("nan")) == b"null"
    assert as_json(b"\xff\xfe") == b'"__4="'
    assert as_json(dt.date(2020, 1, 2)) == b'"2020-01-02"'
    assert as_json(Decimal("1.10")) == b'"1.10"'
    with pytest.raises(CommandError, match="JSON cannot express a value"):
        as_json(object())


def test_row_labels_count_from_1() -> None:
    assert row_label("texts.jsonl", 0) == "texts.jsonl, row 1"


def test_trailing_blank_items_are_dropped() -> None:
    # A blank item stays if another item follows.
    rng = dice()
    for _ in range(50):
        items = rng.choices([0, 0, 0, 1], k=rng.randint(0, 9))
        items += [0] * rng.choice([0, 3, 2 * BLOCK_ROWS, 2 * BLOCK_ROWS + 3])
        items += rng.choices([0, 1], k=rng.randint(0, 3))
        rest, batches = items, []
        while rest:
            size = rng.randint(1, 200)
            batches.append(rest[:size])
            rest = rest[size:]
        expected = "".join(map(str, items)).rstrip("0")
        found = list(drop_trailing_blanks(batches, 0))
        assert "".join(str(item) for batch in found for item in batch) == expected
        assert all(0 < len(batch) <= BLOCK_ROWS + 200 for batch in found)
