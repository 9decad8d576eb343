"""Parquet out: the input's columns with their types, and fills of one type."""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.cli.errors import CommandError
from service.cli.formats import parquet
from service.cli.formats.answers import Problem
from service.cli.formats.base import BLOCK_ROWS, OutputOptions
from service.cli.formats.open import open_rows
from service.cli.formats.parquet import FILLS_TYPE, ParquetOutput
from service.tasks.options import FillOptions
from tests.service.cli.command_line import write_rows

FILL = {"score": 0.5, "token": 7, "token_str": "a", "sequence": "a b"}


def write(source: Path, answers: Sequence[Any], *, errors: bool = False) -> pa.Table:
    """What a file's rows become; an answer is fills or a problem."""
    rows = open_rows(source, "inputs")
    output = source.with_name("out.parquet")
    lines = [a.line if isinstance(a, Problem) else json.dumps(a).encode() for a in answers]
    with ParquetOutput(rows, OutputOptions(FillOptions(), errors)).writing(output) as write_block:
        for block in rows.blocks():
            write_block(block, lines[block.first : block.first + len(block)])
    return pq.read_table(output)


def write_table(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    """A Parquet file."""
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_columns_keep_their_types_and_values(tmp_path: Path) -> None:
    """Whatever they are; the texts too, and what a file says of itself."""
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
    """Those of all masks in one list, each with its mask; what a fill does not have is null."""
    path = write_table(tmp_path / "rows.parquet", {"inputs": ["x", "y", "z"]})
    joint = FILL | {"log_prob": -1.5, "tokens": [1, 2], "token_strs": ["p", "q"], "window": [0, 9]}
    table = write(path, [[FILL, FILL], [[FILL], [], [joint]], []])
    assert table.schema.field("fills").type == FILLS_TYPE
    nothing = dict.fromkeys(field.name for field in FILLS_TYPE.value_type)
    assert table["fills"].to_pylist() == [
        [nothing | FILL | {"mask": 1}] * 2,
        [nothing | FILL | {"mask": 1}, nothing | joint | {"mask": 3}],
        [],
    ]


def test_errors_are_a_column(tmp_path: Path) -> None:
    """It is null beside fills, and they are null beside it."""
    path = write_table(tmp_path / "rows.parquet", {"inputs": ["x", "y"]})
    table = write(path, [Problem("so"), [FILL]], errors=True)
    assert table["error"].to_pylist() == ["so", None]
    assert table["fills"].to_pylist()[0] is None
    assert "error" not in write(path, [[FILL], [FILL]]).schema.names


def test_rows_of_json_become_columns(tmp_path: Path) -> None:
    """Of a type that holds all their values, in the order in which they are first seen."""
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
def test_values_that_no_column_holds_are_refused(tmp_path: Path, rows: list[Any]) -> None:
    """Before anything is computed, with the field and about where."""
    path = write_rows(tmp_path / "rows.jsonl", rows)
    with pytest.raises(CommandError) as caught:
        write(path, [])
    assert str(caught.value) == (
        'rows.jsonl: the field "a" has values of kinds that no column of Parquet holds together, '
        f"up to row {len(rows)}; JSONL takes them."
    )


def test_a_type_that_parquet_lacks_is_refused(tmp_path: Path) -> None:
    """An object without fields is no column."""
    path = write_rows(tmp_path / "rows.jsonl", [{"inputs": "x", "a": {}}])
    with pytest.raises(CommandError, match=r"rows.jsonl has no place in Parquet: .*'a'"):
        write(path, [])


def test_a_field_of_the_same_name_is_refused(tmp_path: Path) -> None:
    """Of any format."""
    for source in (
        write_table(tmp_path / "rows.parquet", {"inputs": ["x"], "fills": ["y"]}),
        write_rows(tmp_path / "rows.jsonl", [{"inputs": "x"}, {"fills": 1}]),
    ):
        with pytest.raises(CommandError, match=f'{source.name} has a field "fills"'):
            write(source, [])


def test_texts_of_csv_and_plain_text(tmp_path: Path) -> None:
    """Their columns are texts, without rows too."""
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
    """In rows and in bytes; all rows are there, in order, of columns with dictionaries too."""
    monkeypatch.setattr(parquet, "_GROUP_ROWS", most_rows)
    monkeypatch.setattr(parquet, "_GROUP_BYTES", most_bytes)
    texts = [f"x{n // 300}" for n in range(1200)]
    columns = {"inputs": texts, "kind": pa.array(texts).dictionary_encode()}
    path = write_table(tmp_path / "rows.parquet", columns, row_group_size=256)
    table = write(path, [[FILL]] * 1200)
    assert table["inputs"].to_pylist() == table["kind"].to_pylist() == texts
    metadata = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert metadata.num_row_groups >= 2
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert max(rows) < most_rows + BLOCK_ROWS
    assert max(rows) < len(texts)
