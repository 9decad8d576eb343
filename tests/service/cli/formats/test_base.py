"""Rows: blocks are cut without loss, values become JSON."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pytest

from service.cli.errors import CommandError
from service.cli.formats.base import BLOCK_ROWS, as_json, cut, row_name, without_blank_end
from tests.service.cli.command_line import dice


@pytest.mark.parametrize("sizes", [[], [1], [3, 1, 5], [BLOCK_ROWS * 2 + 1, 2], [0, 4, 0]])
def test_cut_gives_each_item_once_with_its_number(sizes: list[int]) -> None:
    """From any start to any stop, in order, in blocks that are not too long."""
    total = sum(sizes)
    items = list(range(total))
    batches = [items[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]
    bounds = {0, 1, 2, total // 2, max(0, total - 1), total}
    for start in bounds:
        for stop in (*bounds, None):
            blocks = list(cut(batches, start, stop))
            assert [item for _, block in blocks for item in block] == items[start:stop]
            assert all(block[0] == first for first, block in blocks)
            assert all(len(block) <= BLOCK_ROWS for _, block in blocks)


def test_cut_reads_no_further_than_it_must() -> None:
    """What lies behind the stop may be long, or broken."""

    def batches() -> Iterator[list[int]]:
        yield [0, 1]
        raise AssertionError

    assert list(cut(batches(), 0, 2)) == [(0, [0, 1])]


def test_values_as_json() -> None:
    """What JSON has no word for has a fixed form."""
    assert as_json({"a": [1, 2.5, None, True, "é"]}) == '{"a":[1,2.5,null,true,"é"]}'.encode()
    assert as_json(float("nan")) == b"null"
    assert as_json(b"\xff\xfe") == b'"__4="'
    assert as_json(dt.date(2020, 1, 2)) == b'"2020-01-02"'
    assert as_json(Decimal("1.10")) == b'"1.10"'
    with pytest.raises(CommandError, match="no place in JSON"):
        as_json(object())


def test_rows_are_called_by_numbers_from_1() -> None:
    """As people count, and as lines of a file are counted."""
    assert row_name("texts.jsonl", 0) == "texts.jsonl, row 1"


def test_blank_items_at_the_end_are_left_out() -> None:
    """Those before another item stay, however many there are."""
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
        found = list(without_blank_end(batches, 0))
        assert "".join(str(item) for batch in found for item in batch) == expected
        assert all(0 < len(batch) <= BLOCK_ROWS + 200 for batch in found)
