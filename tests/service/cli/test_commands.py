"""Shards of a file's rows."""

import pytest

from fillmask.cli.commands import WHOLE, Shard
from fillmask.cli.errors import CommandError


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 8, 9, 1000])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 11])
def test_shards_partition_the_rows(rows: int, count: int) -> None:
    # The sizes of shards differ by at most one row.
    ranges = [Shard(index, count).range_of(rows) for index in range(count)]
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
    assert ranges[-1][1] == rows
    sizes = [stop - start for start, stop in ranges]
    assert max(sizes) - min(sizes) <= 1
    assert WHOLE.range_of(rows) == (0, rows)


def test_parse() -> None:
    assert Shard.parse("3/8") == Shard(3, 8)
    assert str(Shard(3, 8)) == "3/8"


@pytest.mark.parametrize(
    "text", ["", "8/8", "1", "1/0", "0/0", "-1/2", "1/2/3", "a/b", "\u0661/\u0662", "1/"]
)
def test_invalid_shards_are_rejected(text: str) -> None:
    with pytest.raises(CommandError, match="must be I/N with I from 0 to N - 1, such as 0/8"):
        Shard.parse(text)
