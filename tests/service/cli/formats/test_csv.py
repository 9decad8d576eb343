"""CSV input with quotes, line breaks and errors. CSV output with one line per fill."""

import csv
import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fillmask.cli.formats.answers import Problem
from fillmask.cli.formats.base import Fields, OutputOptions, Rows, UnreadableRow
from fillmask.cli.formats.by_extension import make_writer, open_rows
from fillmask.cli.formats.csv import CsvRowWriter
from fillmask.cli.tasks.fill_mask import FillMaskTask
from fillmask.parameters.fill_mask import FillOptions
from tests.service.cli.command_line import write_rows

ALWAYS = ["row", "mask", "rank", "score", "token", "token_str", "sequence"]
SOMETIMES = ["log_prob", "target_score", "tokens", "token_strs", "window"]
GIVEN = OutputOptions(FillMaskTask(), FillOptions(), report_errors=False)
FILL = {"score": 0.5, "token": 7, "token_str": "a", "sequence": "a b"}


def csv_file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    return path


def csv_rows(path: Path) -> Rows:
    return open_rows(path, "inputs")


def fields_of(path: Path) -> list[Fields | UnreadableRow]:
    return [row for block in csv_rows(path).blocks() for row in block.fields()]


def test_cells_of_all_kinds(tmp_path: Path) -> None:
    # The file has a byte order mark, carriage returns, quoted quotes, commas and line breaks.
    path = csv_file(
        tmp_path,
        b'\xef\xbb\xbfid,text\r\n1,"a ""b"", c"\r\n2,"one\r\ntwo\n\nthree"\r\n3,\r\n4,"last"',
    )
    assert csv_rows(path).columns == ("id", "text")
    assert csv_rows(path).count() == 4
    assert fields_of(path) == [
        {"id": "1", "text": 'a "b", c'},
        {"id": "2", "text": "one\r\ntwo\n\nthree"},
        {"id": "3", "text": ""},
        {"id": "4", "text": "last"},
    ]
    [block] = csv_rows(path).blocks(1, 2)
    assert block.first == 1
    assert block.json_objects() == [b'{"id":"2","text":"one\\r\\ntwo\\n\\nthree"}']


def test_bad_rows_are_unreadable_and_the_rest_is_not(tmp_path: Path) -> None:
    # More tables are in tests/service/tables. What is known of a row stays in the output.
    path = csv_file(tmp_path, b'a,b\n1,2\n3\n4,"5\n6,7\n')
    assert fields_of(path) == [
        {"a": "1", "b": "2"},
        UnreadableRow(
            "Line 3 must have 2 cells, like the header (got 1); correct it, or set --delimiter or "
            "--quoting.",
            {"a": "3"},
        ),
        UnreadableRow(
            "Line 4 begins a row with a cell in quotation marks that never ends; correct it, or "
            "set --quoting none if quotation marks are text.",
            {"a": "4"},
        ),
        {"a": "6", "b": "7"},
    ]
    [block] = csv_rows(path).blocks(1, 3)
    assert block.json_objects() == [b'{"a":"3"}', b'{"a":"4"}']


def test_a_file_with_columns_alone_has_no_rows(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b"a,b\n")
    assert (csv_rows(path).count(), fields_of(path)) == (0, [])


def test_an_empty_cell_of_one_column_is_a_row(tmp_path: Path) -> None:
    # Quotation marks distinguish an empty cell from a blank line.
    path = csv_file(tmp_path, b'text\na\n""\n')
    assert fields_of(path) == [{"text": "a"}, {"text": ""}]


AWKWARD = [
    '"quoted"',
    'say "go"',
    "a, b; c",
    "back\\slash\\",
    "carriage\rreturn",
    "line\nfeed",
    "both\r\nof them",
    "tab\there",
    "\u2028",
    " x ",
]


@pytest.mark.parametrize("compressed", ["", ".gz"])
def test_every_reader_finds_the_written_rows(tmp_path: Path, compressed: str) -> None:
    # A carriage return is in quotation marks although it is not part of a line end.
    source = write_rows(tmp_path / "rows.jsonl", [{"inputs": text} for text in AWKWARD])
    rows, output = open_rows(source, "inputs"), tmp_path / f"out.csv{compressed}"
    with make_writer(output, rows, GIVEN).open(output) as to:
        for block in rows.blocks():
            to(block, [json.dumps([FILL]).encode()] * len(block))
    assert [row["inputs"] for row in fields_of(output) if isinstance(row, dict)] == AWKWARD
    table = pa.csv.read_csv(output, parse_options=pa.csv.ParseOptions(newlines_in_values=True))
    assert table["inputs"].to_pylist() == AWKWARD
    if compressed:
        assert output.read_bytes()[:8] == bytes.fromhex("1f8b080000000000")  # no name, no time
        return
    with output.open(encoding="utf-8", newline="") as stream:
        assert [row["inputs"] for row in csv.DictReader(stream)] == AWKWARD


def test_tsv_has_no_quotation_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A reader of literal cells finds each text, and escapes in place of tabs and line ends.
    source = write_rows(tmp_path / "rows.jsonl", [{"inputs": text} for text in AWKWARD])
    rows, output = open_rows(source, "inputs"), tmp_path / "out.tsv"
    with make_writer(output, rows, GIVEN).open(output) as to:
        for block in rows.blocks():
            to(block, [json.dumps([FILL | {"tokens": ["a"]}]).encode()] * len(block))
    escaped = [
        text.replace("\t", r"\t").replace("\r", r"\r").replace("\n", r"\n") for text in AWKWARD
    ]
    assert [row["inputs"] for row in fields_of(output) if isinstance(row, dict)] == escaped
    header, *lines = output.read_bytes().decode().removesuffix("\n").split("\n")
    assert [line.split("\t")[0] for line in lines] == escaped
    assert header == "\t".join(["inputs", *ALWAYS, *SOMETIMES])
    assert (
        r"Cells of TSV have no tabs and line ends; they become \t, \n and \r from row 5 on. "
        "Write .csv or .jsonl to keep them.\n"
    ) in capsys.readouterr().err


def write(
    source: Path,
    answers: Sequence[Any],
    options: FillOptions | None = None,
    *,
    errors: bool = False,
    prefix: str | None = None,
) -> list[list[str]]:
    """Return the output for a file's rows and their answers, which are fills or problems."""
    rows = open_rows(source, "inputs")
    output = source.with_name("out.csv")
    lines = [a.line if isinstance(a, Problem) else json.dumps(a).encode() for a in answers]
    with CsvRowWriter(
        rows, OutputOptions(FillMaskTask(), options or FillOptions(), errors, prefix)
    ).open(output) as write_block:
        for block in rows.blocks():
            write_block(block, lines[block.first : block.first + len(block)])
    with output.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text('id,inputs\n7,"one, ""two"""\n8,"three\nfour"\n')
    return path


def test_output_has_a_line_for_each_fill(source: Path) -> None:
    # A line has the cells of its row, the row, mask and rank numbers from 1, and the fill.
    other = FILL | {"token": 8, "score": 1e-7}
    header, *lines = write(source, [[[FILL, other], [FILL]], [other]])
    assert header == ["id", "inputs", *ALWAYS]
    assert lines == [
        ["7", 'one, "two"', "1", "1", "1", "0.5", "7", "a", "a b"],
        ["7", 'one, "two"', "1", "1", "2", "1e-7", "8", "a", "a b"],
        ["7", 'one, "two"', "1", "2", "1", "0.5", "7", "a", "a b"],
        ["8", "three\nfour", "2", "1", "1", "1e-7", "8", "a", "a b"],
    ]


@pytest.mark.parametrize(
    ("options", "more"),
    [
        (FillOptions(), []),
        (FillOptions(targets=("a",)), ["log_prob", "target_score", "tokens"]),
        (FillOptions(granularity="word"), ["log_prob", "tokens"]),
        (FillOptions(strategy="joint"), ["log_prob", "tokens", "token_strs"]),
        (FillOptions(on_long_text="window"), ["window"]),
    ],
)
def test_the_header_has_what_the_options_give(
    source: Path, options: FillOptions, more: list[str]
) -> None:
    # The header depends on options, not on answers, so that all shards have the same header.
    given = {"log_prob": -1.5, "target_score": 0.25, "tokens": [1, 2], "token_strs": ["x", "y"]}
    fill = FILL | given | {"window": [3, 9]}
    header, line, *_ = write(source, [[fill], [fill]], options)
    assert header == ["id", "inputs", *ALWAYS, *more]
    cells = ["-1.5", "0.25", "[1,2]", '["x","y"]', "[3,9]"]
    assert line[9:] == [cells[SOMETIMES.index(name)] for name in more]


def test_errors_have_a_column(source: Path) -> None:
    # The column `error` is empty in lines with a fill.
    header, *lines = write(source, [Problem("so"), [FILL]], errors=True)
    assert header == ["id", "inputs", *ALWAYS, "error"]
    assert lines == [
        ["7", 'one, "two"', "1", *[""] * 6, "so"],
        ["8", "three\nfour", "2", "1", "1", "0.5", "7", "a", "a b", ""],
    ]


def test_rows_without_common_fields(tmp_path: Path) -> None:
    # The columns are the union of all rows' fields. Values other than texts become JSON.
    rows: list[dict[str, Any]] = [
        {"inputs": "x", "n": 1.5},
        {"inputs": "y", "list": [1, "é"], "n": True},
        {"n": None},
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    with path.open("ab") as stream:
        stream.write(b"no JSON\n")
    header, *lines = write(
        path, [[FILL], [FILL], Problem("so"), Problem("no", readable=False)], errors=True
    )
    assert header == ["inputs", "n", "list", *ALWAYS, *SOMETIMES, "error"]
    assert [line[:4] for line in lines] == [
        ["x", "1.5", "", "1"],
        ["y", "true", '[1,"é"]', "2"],
        ["", "", "", "3"],
        ["", "", "", "4"],
    ]


def test_values_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = {"inputs": ["x"], "day": [dt.date(2020, 1, 2)], "n": pa.array([1], pa.int8())}
    pq.write_table(pa.table(columns), path)
    header, line = write(path, [[FILL]])
    assert header == ["inputs", "day", "n", *ALWAYS]
    assert line[:3] == ["x", "2020-01-02", "1"]


def test_no_rows_are_a_header(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.touch()
    assert write(path, []) == [["inputs", *ALWAYS]]


def test_a_mask_without_fills_has_no_line(source: Path) -> None:
    _, *lines = write(source, [[[], [FILL]], []])
    assert [line[2:5] for line in lines] == [["1", "2", "1"]]


@pytest.mark.parametrize("prefix", [None, "my_"])
@pytest.mark.parametrize("name", ["rank", "log_prob"])
def test_field_of_the_same_name_is_kept(tmp_path: Path, name: str, prefix: str | None) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [{"inputs": "x"}, {"inputs": "y", name: 1}])
    header, *lines = write(path, [[FILL], [FILL]], prefix=prefix)
    added = [f"{prefix or 'fillmask_'}{column}" for column in (*ALWAYS, *SOMETIMES)]
    assert header == ["inputs", name, *added]
    assert [line[:3] for line in lines] == [["x", "", "1"], ["y", "1", "2"]]
