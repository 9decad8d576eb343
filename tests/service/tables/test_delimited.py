"""Tables as people have them, read right or refused with the cause, the line and the cure."""

import argparse
import codecs
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fillmask.tables import record_lines
from fillmask.tables.delimited import Dialect, Record, Table
from fillmask.tables.streams import ENCODE, SET_ENCODING, TableError, read_lines

GO = ["1", "Go [MASK] now"]
OPEN = "begins a row with a cell in quotation marks that never ends; correct it, or set --quoting "
AFTER = "begins a row with a cell in quotation marks with text after its end; correct it, or set "
BACKSLASH = r"begins a row with \" inside a cell; set --quoting backslash if \" stands for a "
CELLS = "must have 2 cells, like the header (got {}); correct it, or set --delimiter or --quoting"
RETURN = "begins a row with a carriage return outside"
NUL = (
    "has a NUL byte, as in UTF-16 without a byte order mark; set --encoding to utf-16-le or "
    "utf-16-be, or remove the byte."
)
CUT = "'utf-16-le' codec can't decode byte 0x78 in position 0: truncated data"
CSV_IN_TSV = (
    "has a cell in the quotation marks of CSV, or one that begins with a quotation mark and goes "
    "on in the next cell or line; set --quoting csv, or none to read quotation marks as text."
)


@pytest.fixture(autouse=True)
def _field_size_limit() -> Iterator[None]:
    limit = csv.field_size_limit()
    yield
    csv.field_size_limit(limit)


class Read:
    """Columns, rows and notes of a file."""

    def __init__(self, path: Path, dialect: Dialect, wanted: str = "text") -> None:
        self.notes: list[str] = []
        table = Table(path, path.name, dialect, wanted, self.notes.append)
        self.columns = list(table.columns)
        self.rows = list(table.records())
        assert list(table.records()) == self.rows  # counting and reading find the same rows

    @property
    def cells(self) -> list[list[str]]:
        assert not [row for row in self.rows if row.problem]
        return [row.cells for row in self.rows]


@pytest.mark.parametrize(
    ("name", "content", "options", "cells"),
    [
        ("a.csv", b"id;text\n1;Go [MASK] now\n", {}, [GO]),
        ("a.csv", b"id|text\n1|Go [MASK] now\n", {}, [GO]),
        ("a.csv", b"sep=;\nid;text\n1;Go [MASK] now\n", {}, [GO]),
        ("a.csv", b'"sep=;"\r\nid;text\r\n1;Go [MASK] now\r\n', {}, [GO]),
        ("a.csv", b"id\ttext\n1\tGo [MASK] now\n", {}, [GO]),
        ("a.tsv", b'id,text\n1,"Go [MASK] now"\n', {}, [GO]),
        ("a.tsv", b'"id"\t"text"\n"1"\t"Go [MASK] now"\n', {}, [GO]),
        ("a.csv", b"id*text\n1*Go [MASK] now\n", {"delimiter": "*"}, [GO]),
        ("a.csv", b"\n\nid,text\n1,Go [MASK] now\n", {}, [GO]),
        ("a.csv", b"id,text\r1,Go [MASK] now\r", {}, [GO]),
        ("a.csv", b'id,text\r\n1,"a ""b"", c\r\n\rd"\r\n', {}, [["1", 'a "b", c\r\n\rd']]),
        ("a.csv", 'id,text\n1,"é;x"\n'.encode("utf-16"), {}, [["1", "é;x"]]),
        ("a.csv", codecs.BOM_UTF16_BE + "id,text\n1,é\n".encode("utf-16-be"), {}, [["1", "é"]]),
        ("a.csv", "id,text\n1,é\n".encode("utf-32"), {}, [["1", "é"]]),
        ("a.csv", codecs.BOM_UTF8 + b"text\na\n", {}, [["a"]]),
        ("a.csv", b"id,text\n1,\xe9\n", {"encoding": "cp1252"}, [["1", "é"]]),
        ("a.csv", "id,text\n1,é\n".encode("utf-16-le"), {"encoding": "utf-16-le"}, [["1", "é"]]),
        (
            "a.csv",
            b'id,text\n1,"\\"a\\" C:\\new \\\\"\n2,"b"\n',
            {"quoting": "backslash"},
            [["1", '"a" C:\\new \\'], ["2", "b"]],
        ),
        ("a.csv", b'id,text\n1,"a" b\n', {"quoting": "none"}, [["1", '"a" b']]),
        # literal quotation marks, as in GLUE, STS and KorNLI
        (
            "a.tsv",
            b'id\ttext\n1\t"Yes, she\n2\tshe" b\n',
            {},
            [["1", '"Yes, she'], ["2", 'she" b']],
        ),
        ("a.tsv", b'id\ttext\n1\t"a" or "b"\n2\t"c"\n', {}, [["1", '"a" or "b"'], ["2", '"c"']]),
        ("a.tsv", b'id\ttext\n1\t"a ""b"" c"\n', {"quoting": "none"}, [["1", '"a ""b"" c"']]),
        ("a.tsv", b'id\ttext\n1\t"a\tb\nc"\n', {"quoting": "csv"}, [["1", "a\tb\nc"]]),
    ],
)
def test_tables_that_are_read(
    tmp_path: Path, name: str, content: bytes, options: dict[str, Any], cells: list[list[str]]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    read = Read(path, Dialect(**options))
    assert read.columns[-1] == "text"
    assert read.cells == cells


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"1,\xe9a\n2,b\n", [(2, "1 \ufffda", ENCODE), (3, "2 b", "")]),
        (b"1,a\0\n2,b\n", [(2, "1 a\ufffd", "has a NUL"), (3, "2 b", "")]),
        (
            b"1\n\n2,b,c\n",
            [(2, "1", CELLS.format(1)), (3, "", "is blank; remove"), (4, "2 b", CELLS.format(3))],
        ),
        (
            b"1,a,\n2,b\n3,c,d\n",
            [(2, "1 a", CELLS.format(3)), (3, "2 b", ""), (4, "3 c", CELLS.format(3))],
        ),
        (
            b'1,a\n2,"b\n3,c\n4,d\n',
            [(2, "1 a", ""), (3, "2", OPEN), (4, "3 c", ""), (5, "4 d", "")],
        ),
        (b'"1","b" c\n3,c\n', [(2, "1", AFTER), (3, "3 c", "")]),
        (b'1,"a \\"b\\" c"\n3,c\n', [(2, "1", BACKSLASH), (3, "3 c", "")]),
        (b'1,"a\\", b"\n', [(2, "1 a\\", CELLS.format(3).partition(";")[0] + "; set --quoting b")]),
        (b"1,a\rb\n3,c\n", [(2, "1", RETURN), (3, "3 c", "")]),
        (b"1\ta\rb\n3\tc\n", [(2, "1", RETURN), (3, "3 c", "")]),
    ],
)
def test_rows_with_a_problem_keep_what_is_known(
    tmp_path: Path, content: bytes, rows: list[tuple[int, str, str]]
) -> None:
    # Reading goes on with the line after the one where the row begins.
    is_tsv = b"\t" in content
    path = tmp_path / ("a.tsv" if is_tsv else "a.csv")
    path.write_bytes((b"id\ttext\n" if is_tsv else b"id,text\n") + content)
    read = Read(path, Dialect())
    assert [(row.line, " ".join(row.cells)) for row in read.rows] == [row[:2] for row in rows]
    for row, (_, _, problem) in zip(read.rows, rows, strict=True):
        assert (row.problem or "").startswith(problem)
        assert bool(row.problem) == bool(problem)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", " is empty; its first row must name the columns."),
        (b"sep=;\n\n", " is empty; its first row must name the columns."),
        (b"PK\x03\x04", " is a ZIP archive or an Excel workbook; save its table as .csv."),
        (b"PAR1", " is a Parquet file; name it .parquet."),
        (b"id,\xff\n", f", line 1 {ENCODE}."),
        (b"id,text,id\n", ', line 1 has two columns "id" (1 and 3); rename one.'),
        (
            'id,"text\n'.encode("utf-16-le"),
            f", line 1 {NUL}",
        ),
        (
            "text\na\n".encode("utf-16") + b"x",
            f" is not valid in its encoding ({CUT}); {SET_ENCODING}.",
        ),
        (b'id\ttext\n1\ta\n2\t"a ""b"""\n', f", line 3 {CSV_IN_TSV}"),
        (b'id\ttext\n1\t"a\tb"\n', f", line 2 {CSV_IN_TSV}"),
        (b'id\ttext\n1\t"a\nb"\n', f", line 3 {CSV_IN_TSV}"),
        (b'text\tid\n"a\nb"\t1\n', f", line 2 {CSV_IN_TSV}"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / ("a.tsv" if b"\t" in content else "a.csv")
    path.write_bytes(content)
    with pytest.raises(TableError) as caught:
        Read(path, Dialect())
    assert str(caught.value) == path.name + sentence


def test_what_is_unusual_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"text;;\na;;\n")  # lines that end in delimiters
    read = Read(path, Dialect())
    assert (read.columns, read.cells) == (["text", "column_2", "column_3"], [["a", "", ""]])
    assert read.notes == [
        (
            "a.csv is read with --delimiter ; and --quoting csv, as its line 1 suggests with the "
            'column "text".'
        ),
        "a.csv: the columns without a name are called column_2, column_3.",
    ]


@pytest.mark.parametrize("end", ["\n", "\n\n\n", "\r\n\r\n", "\n \t\n  ", "\n" * 1000])
def test_blank_lines_at_the_end_are_no_rows(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,n\na,1\n\n \nb,2" + end)
    blank = "is blank; remove it"
    assert Read(path, Dialect()).rows == [
        Record(2, ["a", "1"]),
        Record(3, [], blank),
        Record(4, [], blank),
        Record(5, ["b", "2"]),
    ]


@pytest.mark.parametrize("row", [b"x" * 41, b'"' + b"x\n" * 30])
def test_a_row_without_an_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: bytes
) -> None:
    monkeypatch.setattr(record_lines, "MAX_LINE_BYTES", 40)
    monkeypatch.setattr(read_lines, "__defaults__", (40,))
    path = tmp_path / "a.csv"
    path.write_bytes(b"text\n" + row + b"\ny\n")
    first, *others = Read(path, Dialect()).rows
    assert first.line == 2
    assert (first.problem or "").startswith("begins a row with more than 40 bytes; shorten it, or ")
    assert [one.cells for one in others][-1] == ["y"]
    assert len(others) == 1 + row.count(b"\n")


def test_options_of_a_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    Dialect.add_options(parser)
    given = parser.parse_args(["--delimiter=tab", "--quoting=none", "--encoding=Latin1"])
    assert Dialect.of(given) == Dialect("\t", "none", "iso8859-1")
    assert Dialect.of(parser.parse_args([])) == Dialect()
    for option in ("--delimiter=::", "--quoting=yes", "--encoding=none", "--encoding=rot13"):
        with pytest.raises(SystemExit):
            parser.parse_args([option])
        assert option.partition("=")[0] in capsys.readouterr().err
