"""CSV input with quotes, line breaks and errors. CSV output with one line per fill."""

import csv
import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats import csv as csv_format
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
    path = csv_file(tmp_path, b"a,b\n1,2\n3\n\n4,5,6\n\xff,7\n8,9\n")
    rows = fields_of(path)
    assert [rows[0], rows[5]] == [{"a": "1", "b": "2"}, {"a": "8", "b": "9"}]
    assert [row.message for row in rows if isinstance(row, UnreadableRow)] == [
        "The row must have as many cells as the header, 2 (got 1).",
        "The row must have as many cells as the header, 2 (got 0).",
        "The row must have as many cells as the header, 2 (got 3).",
        "The row is not valid UTF-8; encode it as UTF-8.",
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "rows.csv is empty; its first row must name the columns."),
        (b"a,\xff\n", "rows.csv: the first row is not valid UTF-8; encode it as UTF-8."),
        (b"a,b,a\n", 'rows.csv has two columns "a"; rename one.'),
    ],
)
def test_a_first_row_that_names_no_columns(tmp_path: Path, content: bytes, sentence: str) -> None:
    with pytest.raises(CommandError) as caught:
        csv_rows(csv_file(tmp_path, content))
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b'a\n1\n"2\n3\n',
            "rows.csv, line 4 is not valid CSV (unexpected end of data); correct the syntax.",
        ),
        (
            b'a\n1\n"2"x\n3\n',
            "rows.csv, line 3 is not valid CSV (',' expected after '\"'); correct the syntax.",
        ),
    ],
)
def test_quotes_that_do_not_end(tmp_path: Path, content: bytes, sentence: str) -> None:
    # After an unclosed quote the next row has no known start, so the entire file is invalid.
    with pytest.raises(CommandError) as caught:
        csv_rows(csv_file(tmp_path, content)).count()
    assert str(caught.value) == sentence


def test_line_without_an_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A line that is too long is an error, even within quotation marks.
    limit = csv.field_size_limit()
    monkeypatch.setattr(csv_format, "MAX_LINE_BYTES", 40)
    try:
        for row in (b"x" * 41, b'"' + b"x\n" * 30 + b'"'):
            sentence = r"line \d+ is (not valid CSV .*larger|longer) than"
            with pytest.raises(CommandError, match=sentence) as caught:
                csv_rows(csv_file(tmp_path, b"a\n" + row + b"\n")).count()
            assert ("line 2 " in str(caught.value)) == row.startswith(b"x")
        assert csv_rows(csv_file(tmp_path, b"a\n" + b"x" * 39 + b"\n")).count() == 1
    finally:
        csv.field_size_limit(limit)


def test_a_file_with_columns_alone_has_no_rows(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b"a,b\n")
    assert (csv_rows(path).count(), fields_of(path)) == (0, [])


@pytest.mark.parametrize("end", ["\n", "\n\n\n", "\r\n\r\n", "\n \t\n  ", "\n" * 1000])
def test_blank_lines_at_the_end_are_no_rows(tmp_path: Path, end: str) -> None:
    # A blank line before other rows is an unreadable row.
    path = csv_file(tmp_path, b"text,n\na,1\n\n \nb,2" + end.encode())
    assert csv_rows(path).count() == 4
    blank = UnreadableRow("The row must have as many cells as the header, 2 (got 0).")
    assert fields_of(path) == [{"text": "a", "n": "1"}, blank, blank, {"text": "b", "n": "2"}]


def test_an_empty_cell_of_one_column_is_a_row(tmp_path: Path) -> None:
    # Quotation marks distinguish an empty cell from a blank line.
    path = csv_file(tmp_path, b'text\na\n""\n')
    assert fields_of(path) == [{"text": "a"}, {"text": ""}]


def test_tabs_between_the_cells(tmp_path: Path) -> None:
    # Quotation marks protect tabs as they protect commas.
    path = tmp_path / "rows.tsv"
    path.write_text('id\ttext\n1\ta, b\n2\t"tab\there"\n')
    assert fields_of(path) == [{"id": "1", "text": "a, b"}, {"id": "2", "text": "tab\there"}]
    rows, output = open_rows(path, "text"), tmp_path / "out.tsv"
    with make_writer(output, rows, GIVEN).open(output) as to:
        for block in rows.blocks():
            to(block, [json.dumps([FILL]).encode()] * 2)
    header, first, second = csv.reader(output.read_text().splitlines(), delimiter="\t")
    assert header == ["id", "text", *ALWAYS]
    assert first == ["1", "a, b", "1", "1", "1", "0.5", "7", "a", "a b"]
    assert second[1] == "tab\there"


def write(
    source: Path,
    answers: Sequence[Any],
    options: FillOptions | None = None,
    *,
    errors: bool = False,
) -> list[list[str]]:
    """Return the output for a file's rows and their answers, which are fills or problems."""
    rows = open_rows(source, "inputs")
    output = source.with_name("out.csv")
    lines = [a.line if isinstance(a, Problem) else json.dumps(a).encode() for a in answers]
    with CsvRowWriter(rows, OutputOptions(FillMaskTask(), options or FillOptions(), errors)).open(
        output
    ) as write_block:
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


@pytest.mark.parametrize("name", ["rank", "log_prob"])
def test_field_of_the_same_name_is_rejected(tmp_path: Path, name: str) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [{"inputs": "x"}, {"inputs": "y", name: 1}])
    with pytest.raises(CommandError, match=f'rows.jsonl has the field "{name}"'):
        write(path, [[FILL], [FILL]])
