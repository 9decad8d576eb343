"""CSV input with quotes, line breaks and errors. CSV output with one line per fill."""

import csv
import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import Row
from fillmask.cli.formats.by_extension import open_rows
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from tests.service.cli.command_line import fields_in, rows_in, write_rows
from tests.service.cli.formats.written import FILL, write

ALWAYS = ["row", "mask", "rank", "score", "token", "token_str", "sequence"]
SOMETIMES = ["log_prob", "target_score", "tokens", "token_strs", "window"]


def lines_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def test_rows_and_what_is_known_of_malformed_ones(tmp_path: Path) -> None:
    # More tables are in tests/service/tables.
    path = tmp_path / "rows.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\r\n1,"x ""y"", z"\r\n4,"5\r\n6,""\r\n')
    rows = open_rows(path, "a")
    assert (rows.columns, rows.count()) == (("a", "b"), 3)
    assert rows_in(rows) == [
        Row({"a": "1", "b": 'x "y", z'}),
        Row(
            {"a": "4"},
            "Line 3 begins a row with a cell in quotation marks that never ends; correct it, or "
            "set --quoting none if quotation marks are text.",
        ),
        Row({"a": "6", "b": ""}),
    ]
    assert rows_in(rows)[0].to_json() == b'{"a":"1","b":"x \\"y\\", z"}'


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


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_every_reader_finds_the_written_rows(tmp_path: Path, ending: str) -> None:
    # A carriage return is in quotation marks although it is not part of a line end.
    source = write_rows(tmp_path / "rows.jsonl", [{"inputs": text} for text in AWKWARD])
    output = write(source, ending, [[FILL]] * len(AWKWARD))
    assert [row.fields["inputs"] for row in rows_in(open_rows(output, "inputs"))] == AWKWARD
    table = pa.csv.read_csv(output, parse_options=pa.csv.ParseOptions(newlines_in_values=True))
    assert table["inputs"].to_pylist() == AWKWARD
    if ending == "csv.gz":
        assert output.read_bytes()[:8] == bytes.fromhex("1f8b080000000000")  # no name, no time
    else:
        assert [line[0] for line in lines_of(output)[1:]] == AWKWARD


def test_tsv_has_no_quotation_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A reader of literal cells finds each text, and escapes in place of tabs and line ends.
    source = write_rows(tmp_path / "rows.jsonl", [{"inputs": text} for text in AWKWARD])
    output = write(source, "tsv", [[FILL | {"tokens": ["a"]}]] * len(AWKWARD))
    escaped = [
        text.replace("\t", r"\t").replace("\r", r"\r").replace("\n", r"\n") for text in AWKWARD
    ]
    assert [row.fields["inputs"] for row in rows_in(open_rows(output, "inputs"))] == escaped
    header, *lines = output.read_bytes().decode().removesuffix("\n").split("\n")
    assert [line.split("\t")[0] for line in lines] == escaped
    assert header == "\t".join(["inputs", *ALWAYS, *SOMETIMES])
    assert capsys.readouterr().err.startswith(
        r"Cells of TSV have no tabs and line ends; they become \t, \n and \r from row 5 on. "
        "Write .csv or .jsonl to keep them.\n"
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text('id,inputs\n7,"one, ""two"""\n8,"three\nfour"\n')
    return path


def test_output_has_a_line_for_each_fill(source: Path) -> None:
    # A line has the cells of its row, the row, mask and rank numbers from 1, and the fill or the
    # error. A mask without fills has none.
    other = FILL | {"token": 8, "score": 1e-7}
    header, *lines = lines_of(
        write(source, "csv", [[[FILL, other], [], [FILL]], "so"], errors=True)
    )
    assert header == ["id", "inputs", *ALWAYS, "error"]
    assert lines == [
        ["7", 'one, "two"', "1", "1", "1", "0.5", "7", "a", "a b", ""],
        ["7", 'one, "two"', "1", "1", "2", "1e-7", "8", "a", "a b", ""],
        ["7", 'one, "two"', "1", "3", "1", "0.5", "7", "a", "a b", ""],
        ["8", "three\nfour", "2", *[""] * 6, "so"],
    ]


@pytest.mark.parametrize(
    ("options", "more"),
    [
        (FillMaskParameters(), []),
        (FillMaskParameters(targets=("a",)), ["log_prob", "target_score", "tokens"]),
        (FillMaskParameters(granularity="word"), ["log_prob", "tokens"]),
        (FillMaskParameters(strategy="joint"), ["log_prob", "tokens", "token_strs"]),
        (FillMaskParameters(on_long_text="window"), ["window"]),
    ],
)
def test_the_header_has_what_the_options_give(
    source: Path, options: FillMaskParameters, more: list[str]
) -> None:
    # The header depends on options, not on answers, so that all shards have the same header.
    given = {"log_prob": -1.5, "target_score": 0.25, "tokens": [1, 2], "token_strs": ["x", "y"]}
    fill = FILL | given | {"window": [3, 9]}
    header, line, *_ = lines_of(write(source, "csv", [[fill], [fill]], options))
    assert header == ["id", "inputs", *ALWAYS, *more]
    cells = ["-1.5", "0.25", "[1,2]", '["x","y"]', "[3,9]"]
    assert line[9:] == [cells[SOMETIMES.index(name)] for name in more]


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
    header, *lines = lines_of(write(path, "csv", [[FILL], [FILL], "so", "no"], errors=True))
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
    assert lines_of(write(path, "csv", [[FILL]]))[1][:3] == ["x", "2020-01-02", "1"]


@pytest.mark.parametrize(
    ("name", "content", "ending", "prefix"),
    [
        ("rows.csv", "inputs,error\na,b\n", "jsonl", "fillmask_"),
        ("rows.csv", "inputs,fills,fillmask_error\na,b,c\n", "jsonl", "fillmask_fillmask_"),
        ("rows.jsonl", '{"inputs": "a"}\n{"fills": 1}\n', "jsonl", "fillmask_"),
        ("rows.jsonl", '{"inputs": "a", "fillsx": 1}\n', "jsonl", ""),
        ("rows.jsonl", '{"inputs": "a"}\n{"fills": 1}\n', "parquet", "fillmask_"),
        ("rows.jsonl", '{"inputs": "a"}\n{"rank": 1}\n', "csv", "fillmask_"),
    ],
)
def test_added_fields_get_another_name_than_those_of_any_row(
    tmp_path: Path,
    name: str,
    content: str,
    ending: str,
    prefix: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    path.write_text(content)
    rows = open_rows(path, "inputs")
    before = rows.find_columns()
    output = write(path, ending, [[FILL], "so"][: rows.count()], errors=True)
    after = open_rows(output, "inputs").find_columns()
    added = {"csv": [*ALWAYS, *SOMETIMES, "error"], "parquet": ["fills", "error"]}
    results = added.get(ending, ["fills", "error"][: rows.count()])
    assert set(after) == {*before, *(f"{prefix}{result}" for result in results)}
    notes = f"{name} has fields with the names of results, which therefore begin with {prefix}"
    assert capsys.readouterr().err.startswith(notes) == bool(prefix)


def test_a_prefix_that_makes_a_name_of_the_input_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("inputs,my_fills\n")
    with pytest.raises(CommandError) as caught:
        write(path, "jsonl", [], prefix="my_")
    assert str(caught.value) == (
        'rows.csv has the field "my_fills", which the output adds; set another --output-prefix.'
    )
    assert fields_in(open_rows(write(path, "jsonl", [], prefix="your_"), "inputs")) == []
