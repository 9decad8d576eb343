"""Parquet: any part of a file, and values that are only Parquet's."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.cli.errors import CommandError
from service.cli.formats.base import BLOCK_ROWS, Unreadable
from service.cli.formats.parquet import ParquetRows


def write(tmp_path: Path, columns: dict[str, Any], **options: Any) -> Path:
    """A Parquet file."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def not_utf8() -> pa.Array:
    """Texts of which the second is none."""
    offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 1, 3, 4)))
    return pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"a\xff\xfeb")])


@pytest.mark.parametrize("group_rows", [1, 7, 100, 5000])
def test_any_part_of_a_file(tmp_path: Path, group_rows: int) -> None:
    """From one row to before another, wherever the row groups end."""
    count = 3 * BLOCK_ROWS if group_rows > 50 else 40
    texts = [f"text {n}" for n in range(count)]
    path = write(tmp_path, {"text": texts, "n": range(count)}, row_group_size=group_rows)
    rows = ParquetRows(path)
    assert (rows.columns, rows.count(), rows.row_parameters) == (("text", "n"), count, False)
    for start, stop in [(0, None), (0, 0), (5, 6), (count - 1, count), (6, 30), (count, None)]:
        blocks = list(rows.blocks(start, stop))
        numbers = [n for b in blocks for n in range(b.first, b.first + len(b))]
        assert numbers == list(range(count))[start:stop]
        found = [row for block in blocks for row in block.fields()]
        assert found == [{"text": texts[n], "n": n} for n in numbers]
        assert all(len(block) <= BLOCK_ROWS for block in blocks)


def test_only_columns_that_are_needed_are_read(tmp_path: Path) -> None:
    """Those that are not there are nobody's error here."""
    rows = ParquetRows(write(tmp_path, {"a": ["x"], "b": [1], "c": [2]}))
    [block] = rows.blocks(only=("b", "parameters"))
    assert block.fields() == [{"b": 1}]


def test_long_cells_come_in_small_blocks(tmp_path: Path) -> None:
    """A block is bounded in bytes as well."""
    rows = ParquetRows(write(tmp_path, {"a": ["x" * 200_000] * 30}))
    assert {len(block) for block in rows.blocks()} <= set(range(1, 7))
    assert sum(map(len, rows.blocks())) == 30


def test_parts_of_a_block(tmp_path: Path) -> None:
    """They know their numbers."""
    [block] = ParquetRows(write(tmp_path, {"a": list(range(9))})).blocks(2)
    part = block.part(1, 3)
    assert (part.first, part.fields()) == (3, [{"a": 3}, {"a": 4}])


def test_values_that_are_no_json(tmp_path: Path) -> None:
    """Times are texts to the nanosecond, bytes are base64, what is no number is null."""
    columns = {
        "time": pa.array([1], pa.timestamp("ns")),
        "day": pa.array([dt.date(2020, 1, 2)]),
        "bytes": pa.array([b"\xff\xfe"]),
        "float": pa.array([float("nan")]),
        "list": pa.array([[1, None]]),
        "word": pa.array(["a"]).dictionary_encode(),
    }
    [block] = ParquetRows(write(tmp_path, columns)).blocks()
    [line] = block.json_objects()
    assert line == (
        b'{"time":"1970-01-01 00:00:00.000000001","day":"2020-01-02","bytes":"__4=",'
        b'"float":null,"list":[1,null],"word":"a"}'
    )


def test_a_text_that_is_no_utf8_is_a_bad_row(tmp_path: Path) -> None:
    """Those around it are good."""
    [block] = ParquetRows(write(tmp_path, {"a": not_utf8()})).blocks()
    assert block.fields() == [{"a": "a"}, Unreadable("The row is not valid UTF-8."), {"a": "b"}]


def test_a_value_without_a_place_outside_is_an_error(tmp_path: Path) -> None:
    """A JSON object has no two fields of one name."""
    twins = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["b", "b"])
    [block] = ParquetRows(write(tmp_path, {"a": twins})).blocks()
    with pytest.raises(CommandError, match="Row 1 has a value that is only Parquet's"):
        block.fields()


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    """So is one with two columns of one name."""
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"")
    with pytest.raises(CommandError, match=r"rows.parquet is not a Parquet file"):
        ParquetRows(path)
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]), path)
    with pytest.raises(CommandError, match=r'rows.parquet has two columns "a"'):
        ParquetRows(path)


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    """With its columns."""
    rows = ParquetRows(write(tmp_path, {"a": pa.array([], pa.string())}))
    assert (rows.count(), list(rows.blocks()), rows.columns) == (0, [], ("a",))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """Wherever the damage is, it is never an error of Arrow's own."""
    path = write(tmp_path, {"a": [f"text {number}" for number in range(100)]})
    whole = path.read_bytes()
    sentences = set()
    for place in range(4, len(whole), 16):
        path.write_bytes(whole[:place] + b"\xff" * 16 + whole[place + 16 :])
        try:
            for block in ParquetRows(path).blocks():
                block.fields()
        except CommandError as error:
            sentences.add(str(error).partition(":")[0])
    assert sentences >= {f"{path.name} is not a Parquet file", f"{path.name} is damaged"}
