"""CSV: quotes, line breaks, bad rows and bad files."""

import csv
from pathlib import Path

import pytest

from service.cli.errors import CommandError
from service.cli.formats import csv as csv_rows
from service.cli.formats.base import Fields, Unreadable
from service.cli.formats.csv import CsvRows


def write(tmp_path: Path, content: bytes) -> Path:
    """A CSV file."""
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    return path


def fields_of(path: Path) -> list[Fields | Unreadable]:
    """The rows of a file."""
    return [row for block in CsvRows(path).blocks() for row in block.fields()]


def test_cells_of_all_kinds(tmp_path: Path) -> None:
    """A byte order mark, carriage returns, quoted quotes, commas and line breaks."""
    path = write(
        tmp_path,
        b'\xef\xbb\xbfid,text\r\n1,"a ""b"", c"\r\n2,"one\r\ntwo\n\nthree"\r\n3,\r\n4,"last"',
    )
    assert CsvRows(path).columns == ("id", "text")
    assert CsvRows(path).count() == 4
    assert fields_of(path) == [
        {"id": "1", "text": 'a "b", c'},
        {"id": "2", "text": "one\r\ntwo\n\nthree"},
        {"id": "3", "text": ""},
        {"id": "4", "text": "last"},
    ]
    [block] = CsvRows(path).blocks(1, 2)
    assert block.first == 1
    assert block.json_objects() == [b'{"id":"2","text":"one\\r\\ntwo\\n\\nthree"}']


def test_bad_rows_are_unreadable_and_the_rest_is_not(tmp_path: Path) -> None:
    """Too few cells, too many, none, and bytes that are no UTF-8."""
    path = write(tmp_path, b"a,b\n1,2\n3\n\n4,5,6\n\xff,7\n8,9\n")
    rows = fields_of(path)
    assert [rows[0], rows[5]] == [{"a": "1", "b": "2"}, {"a": "8", "b": "9"}]
    assert [row.sentence for row in rows if isinstance(row, Unreadable)] == [
        "The row has 1 cell, and the first one names 2 columns.",
        "The row has 0 cells, and the first one names 2 columns.",
        "The row has 3 cells, and the first one names 2 columns.",
        "The row is not valid UTF-8.",
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "rows.csv is empty; its first row must name the columns."),
        (b"a,\xff\n", "rows.csv: the first row is not valid UTF-8."),
        (b"a,b,a\n", 'rows.csv has two columns "a".'),
    ],
)
def test_a_first_row_that_names_no_columns(tmp_path: Path, content: bytes, sentence: str) -> None:
    """Known before anything is done."""
    with pytest.raises(CommandError) as caught:
        CsvRows(write(tmp_path, content))
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'a\n1\n"2\n3\n', "rows.csv, line 4 is not valid CSV: unexpected end of data."),
        (b'a\n1\n"2"x\n3\n', "rows.csv, line 3 is not valid CSV: ',' expected after '\"'."),
    ],
)
def test_quotes_that_do_not_end(tmp_path: Path, content: bytes, sentence: str) -> None:
    """Nobody knows where the next row begins, so the file is refused."""
    with pytest.raises(CommandError) as caught:
        CsvRows(write(tmp_path, content)).count()
    assert str(caught.value) == sentence


def test_a_line_without_an_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is too long is an error, quoted or not, and never cut."""
    limit = csv.field_size_limit()
    monkeypatch.setattr(csv_rows, "MAX_LINE_BYTES", 40)
    try:
        for row in (b"x" * 41, b'"' + b"x\n" * 30 + b'"'):
            sentence = r"line \d+ is not valid CSV: .*(longer|larger) than"
            with pytest.raises(CommandError, match=sentence) as caught:
                CsvRows(write(tmp_path, b"a\n" + row + b"\n")).count()
            assert ("line 2 " in str(caught.value)) == row.startswith(b"x")
        assert CsvRows(write(tmp_path, b"a\n" + b"x" * 39 + b"\n")).count() == 1
    finally:
        csv.field_size_limit(limit)


def test_a_file_with_columns_alone_has_no_rows(tmp_path: Path) -> None:
    """It is no error."""
    path = write(tmp_path, b"a,b\n")
    assert (CsvRows(path).count(), fields_of(path)) == (0, [])


@pytest.mark.parametrize("end", ["\n", "\n\n\n", "\r\n\r\n", "\n \t\n  ", "\n" * 1000])
def test_blank_lines_at_the_end_are_no_rows(tmp_path: Path, end: str) -> None:
    """A blank line before another is one that says nothing."""
    path = tmp_path / "rows.csv"
    path.write_bytes(b"text,n\na,1\n\n \nb,2" + end.encode())
    rows = CsvRows(path)
    assert rows.count() == 4
    found = [row for block in rows.blocks() for row in block.fields()]
    blank = Unreadable("The row has 0 cells, and the first one names 2 columns.")
    assert found == [{"text": "a", "n": "1"}, blank, blank, {"text": "b", "n": "2"}]


def test_an_empty_cell_of_one_column_is_a_row(tmp_path: Path) -> None:
    """It has quotation marks, by which it is no blank line."""
    path = tmp_path / "rows.csv"
    path.write_text('text\na\n""\n')
    rows = CsvRows(path)
    assert [row for block in rows.blocks() for row in block.fields()] == [
        {"text": "a"},
        {"text": ""},
    ]
