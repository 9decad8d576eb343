"""JSONL and plain text. JSONL output keeps all bytes of a row and adds one field."""

import json
from pathlib import Path

import pytest

from fillmask.cli.formats import lines
from fillmask.cli.formats.base import BLOCK_ROWS
from fillmask.cli.formats.by_extension import open_rows
from fillmask.tables import streams
from fillmask.tables.streams import ENCODE, read_lines
from tests.service.cli.command_line import fields_in, rows_in
from tests.service.cli.formats.written import write

EMPTY = "The line is empty; it must be a JSON object."


def test_json_lines(tmp_path: Path) -> None:
    # More cases of invalid JSON are in test_strict_json.py.
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"a": 1}\r\n{"a": \n\n[1]\n{"a": 1, "a": 2}\n'
        b'  {"a": "x\\ny", "b": 12345678901234567890}  '
    )
    rows = open_rows(path, "text")
    assert rows.count() == 6
    assert fields_in(rows) == [
        {"a": 1},
        "The line is not valid JSON (expecting value at line 2, column 7); correct the syntax.",
        EMPTY,
        "The line must be a JSON object (got a list).",
        'The field "a" is a duplicate; remove it.',
        {"a": "x\ny", "b": 12345678901234567890},
    ]


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (b'{"a":1.00e3, "b" : "\\u00e9"}', b'{"a":1.00e3, "b" : "\\u00e9","fills":[]}\n'),
        (b' { "a": 1 }\t\r', b'{ "a": 1,"fills":[]}\n'),
        (b'{"a": "}"}', b'{"a": "}","fills":[]}\n'),
        (b"{ }", b'{"fills":[]}\n'),
    ],
)
def test_row_is_kept_to_the_byte(tmp_path: Path, row: bytes, line: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(row + b"\n")
    output = write(path, "jsonl", [[]])
    assert output.read_bytes() == line
    assert json.loads(line) == json.loads(row) | {"fills": []}


def test_problems_are_in_a_field_of_their_own(tmp_path: Path) -> None:
    # The output of an unreadable row has only the error.
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{}\n{"a": 1\n')
    output = write(path, "jsonl", ['so "x"', "so", "no"], errors=True)
    assert output.read_bytes() == b'{"a": 1,"error":"so \\"x\\""}\n{"error":"so"}\n{"error":"no"}\n'
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,é\n")
    output = write(path, "jsonl", [[]])
    assert output.read_text(encoding="utf-8") == '{"a":"1","b":"é","fills":[]}\n'


def test_a_line_that_is_too_long_is_a_bad_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 50)
    monkeypatch.setattr(read_lines, "__defaults__", (50,))
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * 100 + b'"}\n{"a": 2}\n')
    rows = open_rows(path, "text")
    long = "The line is longer than 50 bytes; shorten it."
    assert fields_in(rows) == [{"a": 1}, long, {"a": 2}]
    assert rows_in(rows)[1].to_json() == b"{}"


def test_text_lines(tmp_path: Path) -> None:
    # Empty lines are texts too. Only line feeds end a line.
    path = tmp_path / "texts.txt"
    path.write_bytes("one\r\n\n  two\u2028 \n".encode() + b"\xff\n")
    rows = open_rows(path, "text")
    assert fields_in(rows) == [
        {"text": "one"},
        {"text": ""},
        {"text": "  two\u2028 "},
        f"The line {ENCODE}.",
    ]
    assert rows.columns == ("text",)


@pytest.mark.parametrize("blank", [2, 2 * BLOCK_ROWS + 3])
@pytest.mark.parametrize("end", [b"\n", b"\r\n\r\n", b"\n \t\r\n  ", b"\n" * 1000])
@pytest.mark.parametrize("name", ["rows.jsonl", "texts.txt"])
def test_blank_lines_at_the_end_are_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, end: bytes, blank: int
) -> None:
    # A blank line before other rows is an unreadable row, or an empty text, also in another read.
    monkeypatch.setattr(streams, "_CHUNK_BYTES", 7)
    path = tmp_path / name
    path.write_bytes(b'{"text": 1}\n' + b"\n \n" * (blank // 2) + b"\n" * (blank % 2))
    with path.open("ab") as stream:
        stream.write(b'{"text": 2}\n{"text": 3}' + end)
    rows = open_rows(path, "text")
    assert rows.count() == blank + 3
    first, *middle, second, last = fields_in(rows)
    assert middle == [EMPTY if name == "rows.jsonl" else {"text": ""}] * blank
    assert ["1" in str(first), "2" in str(second), "3" in str(last)] == [True] * 3
    path.write_bytes(b"\xef\xbb\xbf" + end)
    assert (rows.count(), fields_in(rows)) == (0, [])
