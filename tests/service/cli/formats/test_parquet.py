"""Reading of Parquet files and values, where times become strings. Writing of typed columns."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats import parquet_writer
from fillmask.cli.formats.base import BLOCK_ROWS, Row
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.formats.parquet_values import rows_of
from tests.service.cli.command_line import fields_in, rows_in, write_rows
from tests.service.cli.formats.written import FILL, write


def parquet_file(tmp_path: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_long_cells_come_in_small_blocks_and_columns_may_be_left_out(tmp_path: Path) -> None:
    long = open_rows(parquet_file(tmp_path, {"a": ["x" * 200_000] * 30}), "a")
    assert {len(block) for block in long.blocks()} <= set(range(1, 7))
    assert sum(map(len, long.blocks())) == 30
    rows = open_rows(parquet_file(tmp_path, {"text": ["a"] * 9, "n": range(9)}), "text")
    assert (rows.columns, rows.row_parameters) == (("text", "n"), False)
    [block] = rows.blocks(2, 9, only=("n", "parameters"))
    assert [row.fields for row in block.rows()] == [{"n": n} for n in range(2, 9)]


def test_values_that_are_no_json(tmp_path: Path) -> None:
    # In JSON, times are texts with nanoseconds, bytes are base64, and NaN is null.
    columns = {
        "time": pa.array([1], pa.timestamp("ns")),
        "day": pa.array([dt.date(2020, 1, 2)]),
        "money": pa.array([Decimal("1.10")]),
        "bytes": pa.array([b"\xff\xfe"]),
        "float": pa.array([float("nan")]),
        "list": pa.array([[1, None]]),
        "word": pa.array(["a"]).dictionary_encode(),
    }
    [row] = rows_in(open_rows(parquet_file(tmp_path, columns), "time"))
    assert row.to_json() == (
        b'{"time":"1970-01-01 00:00:00.000000001","day":"2020-01-02","money":"1.10",'
        b'"bytes":"__4=","float":null,"list":[1,null],"word":"a"}'
    )
    with pytest.raises(CommandError, match="JSON cannot express a value"):
        Row({"a": object()}).to_json()


def test_rows_that_cannot_be_read(tmp_path: Path) -> None:
    # A struct with two fields of one name has no representation in JSON.
    offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 1, 3, 4)))
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"a\xff\xfeb")])
    rows = open_rows(parquet_file(tmp_path, {"a": texts, "n": [1, 2, 3]}), "a")
    unreadable = Row({"n": 2}, "The row is not valid UTF-8; encode it as UTF-8.")
    assert rows_in(rows) == [Row({"a": "a", "n": 1}), unreadable, Row({"a": "b", "n": 3})]
    twins = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["b", "b"])
    rows = open_rows(parquet_file(tmp_path, {"a": ["x"], "b": twins}), "a")
    with pytest.raises(CommandError, match=r'pyarrow cannot read the column "b" in row 1 \('):
        rows_in(rows)


@pytest.mark.parametrize("source", ["folder", "folder/part-*.parquet"])
def test_files_of_a_folder_have_the_same_columns(tmp_path: Path, source: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, values in enumerate(([0, 1], [2], ["x"])):
        pq.write_table(pa.table({"n": values}), folder / f"part-{number}.parquet")
        if number == 1:
            rows = open_rows(tmp_path / source, "n")
            names = [path.name for path in rows.source.files]
            assert names == ["part-0.parquet", "part-1.parquet"]
            assert fields_in(rows) == [{"n": 0}, {"n": 1}, {"n": 2}]
    with pytest.raises(
        CommandError, match=r"part-2.parquet has other columns or types than part-0"
    ):
        open_rows(tmp_path / source, "n")


def test_file_that_is_not_parquet_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"")
    with pytest.raises(CommandError, match=r"rows.parquet is not a Parquet file"):
        open_rows(path, "a")
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]), path)
    with pytest.raises(CommandError, match=r'rows.parquet has two columns "a"'):
        open_rows(path, "a")


def test_damaged_file_is_rejected(tmp_path: Path) -> None:
    # Arrow's own errors never reach the user.
    path = parquet_file(tmp_path, {"a": [f"text {number}" for number in range(100)]})
    whole = path.read_bytes()
    sentences = set()
    for place in range(4, len(whole), 16):
        path.write_bytes(whole[:place] + b"\xff" * 16 + whole[place + 16 :])
        try:
            rows_in(open_rows(path, "a"))
        except CommandError as error:
            sentences.add(str(error).partition(" (")[0])
    assert sentences >= {f"{path.name} is not a Parquet file", f"{path.name} is damaged"}


def test_columns_keep_their_types_and_values(tmp_path: Path) -> None:
    # The output also keeps the metadata of the input's schema, and a column of a result's name.
    columns = {
        "inputs": pa.array(["x", None], pa.large_string()),
        "time": pa.array([1, 2], pa.timestamp("ns", "Europe/Berlin")),
        "money": pa.array([Decimal("1.10"), None], pa.decimal128(9, 2)),
        "bytes": pa.array([b"\xff", b""], pa.binary()),
        "nested": pa.array([[{"a": 1}], []], pa.list_(pa.struct([("a", pa.int8())]))),
        "fills": pa.array(["k", "k"]).dictionary_encode(),
    }
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns).replace_schema_metadata({"by": "hand"}), path)
    written = pq.read_table(write(path, "parquet", [[FILL], [FILL]]))
    before = pq.read_table(path)
    assert written.drop_columns("fillmask_fills").schema.equals(before.schema, check_metadata=True)
    assert written.drop_columns("fillmask_fills").equals(before)


def test_rows_of_json_become_columns(tmp_path: Path) -> None:
    # A column has a type that fits all its values.
    rows: list[dict[str, Any]] = [{"inputs": "x", "n": 1, "s": {"a": 1}} for _ in range(300)]
    rows += [{"n": 2.5, "inputs": "y", "s": {"b": "c"}, "late": [True]}, {"inputs": None}]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    with path.open("ab") as stream:
        stream.write(b"no JSON\n")
    output = write(path, "parquet", [[FILL]] * 301 + ["so", "no"], errors=True)
    table = pq.read_table(output)
    assert table.schema.names == ["inputs", "n", "s", "late", "fills", "error"]
    assert table.schema.field("n").type == pa.float64()
    assert table.schema.field("s").type == pa.struct([("a", pa.int64()), ("b", pa.string())])
    last = table.drop_columns(["fills", "error"]).to_pylist()[300:]
    assert last[0] == {"inputs": "y", "n": 2.5, "s": {"a": None, "b": "c"}, "late": [True]}
    assert last[1:] == [dict.fromkeys(("inputs", "n", "s", "late"))] * 2


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": 1}, {"a": "x"}],
        [{"a": [1]}, {"a": {"b": 1}}],
        [{"a": 2**70}],
        [{"a": {"b": 1}}] * 256 + [{"a": {"b": "x"}}],
    ],
)
def test_values_that_no_column_holds_are_rejected(tmp_path: Path, rows: list[Any]) -> None:
    # The writer raises the error before it writes the first answer.
    path = write_rows(tmp_path / "rows.jsonl", rows)
    with pytest.raises(CommandError) as caught:
        write(path, "parquet", [])
    assert str(caught.value) == (
        f'rows.jsonl: the values of field "a", up to row {len(rows)}, have types that do not fit '
        "in one Parquet column; write JSONL instead."
    )


def test_type_that_parquet_lacks_is_rejected(tmp_path: Path) -> None:
    # Parquet has no type for an object without fields.
    path = write_rows(tmp_path / "rows.jsonl", [{"inputs": "x", "a": {}}])
    with pytest.raises(CommandError, match=r"pyarrow cannot write rows.jsonl as Parquet \(.*'a'"):
        write(path, "parquet", [])


@pytest.mark.parametrize(("most_rows", "most_bytes"), [(500, 2**26), (2**14, 20_000)])
def test_row_groups_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_rows: int, most_bytes: int
) -> None:
    monkeypatch.setattr(parquet_writer, "_GROUP_ROWS", most_rows)
    monkeypatch.setattr(parquet_writer, "_GROUP_BYTES", most_bytes)
    texts = [f"x{n // 300}" for n in range(1200)]
    columns = {"inputs": texts, "kind": pa.array(texts).dictionary_encode()}
    path = parquet_file(tmp_path, columns, row_group_size=256)
    output = write(path, "parquet", [[FILL]] * 1200)
    table = pq.read_table(output)
    assert table["inputs"].to_pylist() == table["kind"].to_pylist() == texts
    metadata = pq.ParquetFile(output).metadata
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert max(rows) < min(most_rows + BLOCK_ROWS, len(texts))


NS = pa.duration("ns")
NESTED = pa.list_(pa.struct([("a", pa.list_(pa.timestamp("ns"))), ("b", pa.int8())]))


@pytest.mark.parametrize(
    ("value", "kind", "plain"),
    [
        (1_500_000_001, NS, "PT1.500000001S"),
        (-1_500, pa.duration("ms"), "-PT1.5S"),
        (90_000, pa.duration("s"), "PT90000S"),
        (0, pa.duration("us"), "PT0S"),
        (2**63 - 1, pa.duration("s"), "PT9223372036854775807S"),
        ([1001, None], pa.list_(NS), ["PT0.000001001S", None]),
        ([1, 2], pa.list_(NS, 2), ["PT0.000000001S", "PT0.000000002S"]),
        ({"a": 1}, pa.struct([("a", NS)]), {"a": "PT0.000000001S"}),
        ([(1, 2)], pa.map_(NS, NS), [("PT0.000000001S", "PT0.000000002S")]),
        (1, pa.timestamp("ns"), "1970-01-01 00:00:00.000000001"),
        (1, pa.time64("ns"), "00:00:00.000000001"),
        (1, pa.date32(), "1970-01-02"),
        (3_000_000, pa.date32(), "10183-09-21"),
        ([{"a": [1], "b": 7}], NESTED, [{"a": ["1970-01-01 00:00:00.000000001"], "b": 7}]),
        (1.5, pa.float16(), 1.5),
        (b"\xff", pa.binary(), b"\xff"),
    ],
)
def test_a_value(value: object, kind: pa.DataType, plain: Any) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([value, None, value], kind)], ["x"])
    assert list(rows_of(batch)) == [{"x": plain}, {"x": None}, {"x": plain}]
    assert list(rows_of(batch.slice(2))) == [{"x": plain}]


def test_a_dictionary_of_durations() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array([1, 2], NS))
    batch = pa.RecordBatch.from_arrays([values], ["x"])
    assert [row["x"] for row in rows_of(batch)] == ["PT0.000000002S", None, "PT0.000000001S"]
