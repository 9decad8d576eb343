"""Reading of Parquet files and of their parts. Writing of fills in typed columns."""

import datetime as dt
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.answers import Problem
from fillmask.cli.formats.base import BLOCK_ROWS, OutputOptions, UnreadableRow
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.formats.parquet import writer
from fillmask.cli.formats.parquet.layout import FILL_TYPE
from fillmask.cli.formats.parquet.rows import ParquetRows
from fillmask.cli.formats.parquet.writer import ParquetRowWriter
from fillmask.cli.tasks.fill_mask import FillMaskTask
from fillmask.parameters.fill_mask import FillOptions
from tests.service.cli.command_line import write_rows

FILL = {"score": 0.5, "token": 7, "token_str": "a", "sequence": "a b"}


def parquet_file(tmp_path: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def rows_of(path: Path) -> ParquetRows:
    rows = open_rows(path, "inputs")
    assert isinstance(rows, ParquetRows)
    return rows


def not_utf8() -> pa.Array:
    """Return texts of which the second is not UTF-8."""
    offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 1, 3, 4)))
    return pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"a\xff\xfeb")])


@pytest.mark.parametrize("group_rows", [1, 7, 100, 5000])
def test_any_part_of_a_file(tmp_path: Path, group_rows: int) -> None:
    count = 3 * BLOCK_ROWS if group_rows > 50 else 40
    texts = [f"text {n}" for n in range(count)]
    path = parquet_file(tmp_path, {"text": texts, "n": range(count)}, row_group_size=group_rows)
    rows = rows_of(path)
    assert (rows.columns, rows.count(), rows.row_parameters) == (("text", "n"), count, False)
    for start, stop in [(0, None), (0, 0), (5, 6), (count - 1, count), (6, 30), (count, None)]:
        blocks = list(rows.blocks(start, stop))
        numbers = [n for b in blocks for n in range(b.first, b.first + len(b))]
        assert numbers == list(range(count))[start:stop]
        found = [row for block in blocks for row in block.fields()]
        assert found == [{"text": texts[n], "n": n} for n in numbers]
        assert all(len(block) <= BLOCK_ROWS for block in blocks)


def test_only_columns_that_are_needed_are_read(tmp_path: Path) -> None:
    # The reader ignores requested columns that the file lacks.
    rows = rows_of(parquet_file(tmp_path, {"a": ["x"], "b": [1], "c": [2]}))
    [block] = rows.blocks(only=("b", "parameters"))
    assert block.fields() == [{"b": 1}]


def test_long_cells_come_in_small_blocks(tmp_path: Path) -> None:
    rows = rows_of(parquet_file(tmp_path, {"a": ["x" * 200_000] * 30}))
    assert {len(block) for block in rows.blocks()} <= set(range(1, 7))
    assert sum(map(len, rows.blocks())) == 30


def test_parts_of_a_block(tmp_path: Path) -> None:
    [block] = rows_of(parquet_file(tmp_path, {"a": list(range(9))})).blocks(2)
    part = block.slice(1, 3)
    assert (part.first, part.fields()) == (3, [{"a": 3}, {"a": 4}])


def test_values_that_are_no_json(tmp_path: Path) -> None:
    # In JSON, times are texts with nanoseconds, bytes are base64, and NaN is null.
    columns = {
        "time": pa.array([1], pa.timestamp("ns")),
        "day": pa.array([dt.date(2020, 1, 2)]),
        "bytes": pa.array([b"\xff\xfe"]),
        "float": pa.array([float("nan")]),
        "list": pa.array([[1, None]]),
        "word": pa.array(["a"]).dictionary_encode(),
    }
    [block] = rows_of(parquet_file(tmp_path, columns)).blocks()
    [line] = block.json_objects()
    assert line == (
        b'{"time":"1970-01-01 00:00:00.000000001","day":"2020-01-02","bytes":"__4=",'
        b'"float":null,"list":[1,null],"word":"a"}'
    )


def test_a_text_that_is_no_utf8_is_a_bad_row(tmp_path: Path) -> None:
    [block] = rows_of(parquet_file(tmp_path, {"a": not_utf8(), "n": [1, 2, 3]})).blocks()
    unreadable = UnreadableRow("The row is not valid UTF-8; encode it as UTF-8.", {"n": 2})
    assert block.fields() == [{"a": "a", "n": 1}, unreadable, {"a": "b", "n": 3}]


def test_a_value_without_a_place_outside_is_an_error(tmp_path: Path) -> None:
    # A struct with two fields of one name has no representation in JSON.
    twins = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["b", "b"])
    [block] = rows_of(parquet_file(tmp_path, {"a": ["x"], "b": twins})).blocks()
    with pytest.raises(CommandError, match=r'pyarrow cannot read the column "b" in row 1 \('):
        block.fields()


@pytest.mark.parametrize("source", ["folder", "folder/part-*.parquet"])
def test_files_of_a_folder_are_one_input(tmp_path: Path, source: str) -> None:
    # The order is that of the names. Spark and others hide files with an underscore or a dot.
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, numbers in (("part-1", [3, 4, 5]), ("part-0", [0, 1, 2]), ("part-2", [6])):
        pq.write_table(pa.table({"n": numbers}), folder / f"{name}.parquet", row_group_size=2)
    for name in ("_SUCCESS", ".part-0.parquet.crc"):
        (folder / name).touch()
    rows = rows_of(tmp_path / source)
    assert (rows.count(), rows.columns) == (7, ("n",))
    assert [path.name for path in rows.files] == [f"part-{n}.parquet" for n in range(3)]
    for start in range(8):
        for stop in range(start, 8):
            blocks = list(rows.blocks(start, stop))
            assert [row["n"] for block in blocks for row in block.known_fields()] == list(
                range(start, stop)
            )
            assert [block.first for block in blocks] == [
                block.known_fields()[0]["n"] for block in blocks
            ]
    pq.write_table(pa.table({"n": ["x"]}), folder / "part-3.parquet")
    with pytest.raises(
        CommandError, match=r"part-3.parquet has other columns or types than part-0"
    ):
        rows_of(tmp_path / source)


def test_file_that_is_not_parquet_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"")
    with pytest.raises(CommandError, match=r"rows.parquet is not a Parquet file"):
        rows_of(path)
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]), path)
    with pytest.raises(CommandError, match=r'rows.parquet has two columns "a"'):
        rows_of(path)


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    rows = rows_of(parquet_file(tmp_path, {"a": pa.array([], pa.string())}))
    assert (rows.count(), list(rows.blocks()), rows.columns) == (0, [], ("a",))


def test_damaged_file_is_rejected(tmp_path: Path) -> None:
    # Arrow's own errors never reach the user.
    path = parquet_file(tmp_path, {"a": [f"text {number}" for number in range(100)]})
    whole = path.read_bytes()
    sentences = set()
    for place in range(4, len(whole), 16):
        path.write_bytes(whole[:place] + b"\xff" * 16 + whole[place + 16 :])
        try:
            for block in rows_of(path).blocks():
                block.fields()
        except CommandError as error:
            sentences.add(str(error).partition(" (")[0])
    assert sentences >= {f"{path.name} is not a Parquet file", f"{path.name} is damaged"}


def write(source: Path, answers: Sequence[Any], *, errors: bool = False) -> pa.Table:
    """Return the output for a file's rows and their answers, which are fills or problems."""
    rows = open_rows(source, "inputs")
    output = source.with_name("out.parquet")
    lines = [a.line if isinstance(a, Problem) else json.dumps(a).encode() for a in answers]
    with ParquetRowWriter(rows, OutputOptions(FillMaskTask(), FillOptions(), errors)).open(
        output
    ) as write_block:
        for block in rows.blocks():
            write_block(block, lines[block.first : block.first + len(block)])
    return pq.read_table(output)


def test_columns_keep_their_types_and_values(tmp_path: Path) -> None:
    # The output also keeps the metadata of the input's schema.
    columns = {
        "inputs": pa.array(["x", None], pa.large_string()),
        "time": pa.array([1, 2], pa.timestamp("ns", "Europe/Berlin")),
        "money": pa.array([Decimal("1.10"), None], pa.decimal128(9, 2)),
        "bytes": pa.array([b"\xff", b""], pa.binary()),
        "nested": pa.array([[{"a": 1}], []], pa.list_(pa.struct([("a", pa.int8())]))),
        "kind": pa.array(["k", "k"]).dictionary_encode(),
        "float": pa.array([float("nan"), 1.0], pa.float32()),
    }
    table = pa.table(columns).replace_schema_metadata({"by": "hand"})
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path)
    written = write(path, [[FILL], [FILL]])
    before = pq.read_table(path)
    assert written.drop_columns("fills").schema.equals(before.schema, check_metadata=True)
    for name in columns:
        if name != "float":
            assert written[name].equals(before[name]), name
    assert str(written["float"].to_pylist()) == "[nan, 1.0]"


def test_fills_have_one_type_whatever_was_asked(tmp_path: Path) -> None:
    # One list per row contains the fills of all masks.
    path = parquet_file(tmp_path, {"inputs": ["x", "y", "z"]})
    joint = FILL | {"log_prob": -1.5, "tokens": [1, 2], "token_strs": ["p", "q"], "window": [0, 9]}
    table = write(path, [[FILL, FILL], [[FILL], [], [joint]], []])
    assert table.schema.field("fills").type == pa.list_(FILL_TYPE)
    nothing = dict.fromkeys(field.name for field in FILL_TYPE)
    assert table["fills"].to_pylist() == [
        [nothing | FILL | {"mask": 1}] * 2,
        [nothing | FILL | {"mask": 1}, nothing | joint | {"mask": 3}],
        [],
    ]


def test_errors_are_a_column(tmp_path: Path) -> None:
    path = parquet_file(tmp_path, {"inputs": ["x", "y"]})
    table = write(path, [Problem("so"), [FILL]], errors=True)
    assert table["error"].to_pylist() == ["so", None]
    assert table["fills"].to_pylist()[0] is None
    assert "error" not in write(path, [[FILL], [FILL]]).schema.names


def test_rows_of_json_become_columns(tmp_path: Path) -> None:
    # A column has a type that fits all its values.
    rows: list[dict[str, Any]] = [{"inputs": "x", "n": 1, "s": {"a": 1}} for _ in range(300)]
    rows += [{"n": 2.5, "inputs": "y", "s": {"b": "c"}, "late": [True]}, {"inputs": None}]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    with path.open("ab") as stream:
        stream.write(b"no JSON\n")
    answers = [[FILL]] * 301 + [Problem("so"), Problem("no", readable=False)]
    table = write(path, answers, errors=True)
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
        [{"a": True}, {"a": 1}],
        [{"a": [1]}, {"a": {"b": 1}}],
        [{"a": 2**70}],
        [{"a": 1}] * 256 + [{"a": "x"}],
        [{"a": {"b": 1}}] * 256 + [{"a": {"b": "x"}}],
    ],
)
def test_values_that_no_column_holds_are_rejected(tmp_path: Path, rows: list[Any]) -> None:
    # The writer raises the error before it writes the first answer.
    path = write_rows(tmp_path / "rows.jsonl", rows)
    with pytest.raises(CommandError) as caught:
        write(path, [])
    assert str(caught.value) == (
        f'rows.jsonl: the values of field "a", up to row {len(rows)}, have types that do not fit '
        "in one Parquet column; write JSONL instead."
    )


def test_type_that_parquet_lacks_is_rejected(tmp_path: Path) -> None:
    # Parquet has no type for an object without fields.
    path = write_rows(tmp_path / "rows.jsonl", [{"inputs": "x", "a": {}}])
    with pytest.raises(CommandError, match=r"pyarrow cannot write rows.jsonl as Parquet \(.*'a'"):
        write(path, [])


def test_field_of_the_same_name_is_kept(tmp_path: Path) -> None:
    for source in (
        parquet_file(tmp_path, {"inputs": ["x"], "fills": ["y"]}),
        write_rows(tmp_path / "rows.jsonl", [{"inputs": "x"}, {"fills": 1}]),
    ):
        table = write(source, [[FILL]] * open_rows(source, "inputs").count())
        assert table.schema.names == ["inputs", "fills", "fillmask_fills"]


def test_texts_of_csv_and_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,inputs\n")
    table = write(path, [])
    assert table.num_rows == 0
    assert table.schema.remove(2) == pa.schema([("id", pa.string()), ("inputs", pa.string())])
    path.write_text("id,inputs\n1,x\n")
    assert write(path, [[FILL]])["id"].to_pylist() == ["1"]


@pytest.mark.parametrize(("most_rows", "most_bytes"), [(500, 2**26), (2**14, 20_000)])
def test_row_groups_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_rows: int, most_bytes: int
) -> None:
    # A row group has a maximum number of rows and of bytes.
    monkeypatch.setattr(writer, "_GROUP_ROWS", most_rows)
    monkeypatch.setattr(writer, "_GROUP_BYTES", most_bytes)
    texts = [f"x{n // 300}" for n in range(1200)]
    columns = {"inputs": texts, "kind": pa.array(texts).dictionary_encode()}
    path = parquet_file(tmp_path, columns, row_group_size=256)
    table = write(path, [[FILL]] * 1200)
    assert table["inputs"].to_pylist() == table["kind"].to_pylist() == texts
    metadata = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert metadata.num_row_groups >= 2
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert max(rows) < most_rows + BLOCK_ROWS
    assert max(rows) < len(texts)
