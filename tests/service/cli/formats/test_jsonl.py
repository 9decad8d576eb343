"""JSONL rows. The output keeps all bytes of a row and adds one field."""

import io
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats import lines
from fillmask.cli.formats.answers import Problem
from fillmask.cli.formats.base import BLOCK_ROWS, Fields, OutputOptions, UnreadableRow
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.formats.jsonl import JsonBlock, JsonRows, JsonRowWriter
from fillmask.cli.tasks.fill_mask import FillMaskTask
from fillmask.parameters.fill_mask import FillOptions
from fillmask.tables.streams import ENCODE, open_text, read_lines


def fields_of(path: Path, start: int = 0, stop: int | None = None) -> list[Fields | UnreadableRow]:
    rows = open_rows(path, "text")
    return [row for block in rows.blocks(start, stop) for row in block.fields()]


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"a": 1}\r\n'
        b'{"a": \n'
        b"\n"
        b"[1]\n"
        b'{"a": 1, "a": 2}\n'
        b'  {"a": "x\\ny", "b": 12345678901234567890}  '
    )
    return path


def test_json_lines(jsonl: Path) -> None:
    # More cases of invalid JSON are in test_strict_json.py.
    rows = fields_of(jsonl)
    assert open_rows(jsonl, "text").count() == len(rows) == 6
    assert rows[0] == {"a": 1}
    assert rows[5] == {"a": "x\ny", "b": 12345678901234567890}
    assert [row.message for row in rows if isinstance(row, UnreadableRow)] == [
        "The line is not valid JSON (expecting value at line 2, column 7); correct the syntax.",
        "The line is empty; it must be a JSON object.",
        "The line must be a JSON object (got a list).",
        'The field "a" is a duplicate; remove it.',
    ]


def test_json_lines_are_kept_to_the_byte(tmp_path: Path) -> None:
    line = b'{ "a":1.00e3,  "b" : "\\u00e9"}'
    path = tmp_path / "rows.ndjson"
    path.write_bytes(b"  " + line + b" \r\n")
    [block] = open_rows(path, "text").blocks()
    assert block.json_objects() == [line]


def test_a_line_that_is_too_long_is_a_bad_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 50)
    monkeypatch.setattr(read_lines, "__defaults__", (50,))
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * 100 + b'"}\n{"a": 2}\n')
    long = UnreadableRow("The line is longer than 50 bytes; shorten it.")
    assert fields_of(path) == [{"a": 1}, long, {"a": 2}]
    [block] = open_rows(path, "text").blocks()
    assert block.json_objects()[1] == b"{}"


def test_text_lines(tmp_path: Path) -> None:
    # Empty lines are texts too. Only line feeds end a line.
    path = tmp_path / "texts.txt"
    path.write_bytes("one\r\n\n  two\u2028 \n".encode() + b"\xff\n")
    assert fields_of(path) == [
        {"text": "one"},
        {"text": ""},
        {"text": "  two\u2028 "},
        UnreadableRow(f"The line {ENCODE}."),
    ]
    assert open_rows(path, "text").columns == ("text",)


@pytest.mark.parametrize("name", ["rows.jsonl", "texts.txt"])
def test_an_empty_file_has_no_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()
    assert fields_of(path) == []
    assert open_rows(path, "text").count() == 0


def test_any_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps({'n': n})}\n" for n in range(3 * BLOCK_ROWS)))
    for start, stop in [(0, 5), (BLOCK_ROWS - 1, BLOCK_ROWS + 1), (700, None), (9, 9)]:
        rows = fields_of(path, start, stop)
        assert rows == [{"n": n} for n in range(3 * BLOCK_ROWS)][start:stop]
    [block] = open_rows(path, "text").blocks(10, 20)
    part = block.slice(3, 5)
    assert (part.first, len(part), part.fields()) == (13, 2, [{"n": 13}, {"n": 14}])


@pytest.mark.parametrize("end", [b"\n", b"\n\n\n", b"\r\n\r\n", b"\n \t\r\n  ", b"\n" * 1000])
@pytest.mark.parametrize("name", ["rows.jsonl", "texts.txt"])
def test_blank_lines_at_the_end_are_no_rows(tmp_path: Path, name: str, end: bytes) -> None:
    # A blank line before other rows is an unreadable row.
    path = tmp_path / name
    path.write_bytes(b'{"text": 1}\n\n \n{"text": 2}' + end)
    rows = open_rows(path, "text")
    assert rows.count() == 4
    first, *blank, last = fields_of(path)
    line = UnreadableRow("The line is empty; it must be a JSON object.")
    assert blank == ([line] * 2 if name == "rows.jsonl" else [{"text": ""}] * 2)
    assert "1" in str(first)
    assert "2" in str(last)
    path.write_bytes(b"\xef\xbb\xbf" + end)
    assert (rows.count(), fields_of(path)) == (0, [])


GIVEN = OutputOptions(FillMaskTask(), FillOptions(), report_errors=True)


def written(row: bytes, answer: bytes) -> bytes:
    """Return the output line of a row."""
    stream, rows = io.BytesIO(), JsonRows("rows", lambda: open_text(Path(os.devnull)))
    JsonRowWriter(rows, GIVEN).write_to(stream)(JsonBlock(0, [row]), [answer])
    return stream.getvalue()


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (b'{"a":1.00e3, "b" : "\\u00e9"}', b'{"a":1.00e3, "b" : "\\u00e9","fills":[]}\n'),
        (b' { "a": 1 }\t', b'{ "a": 1,"fills":[]}\n'),
        (b'{"a": "}"}', b'{"a": "}","fills":[]}\n'),
    ],
)
def test_row_is_kept_to_the_byte(row: bytes, line: bytes) -> None:
    assert written(row, b"[]") == line
    assert json.loads(line) == json.loads(row) | {"fills": []}


def test_problems_are_in_a_field_of_their_own() -> None:
    # The output of an unreadable row has only the error.
    assert written(b'{"a": 1}', Problem('so "x"').line) == b'{"a": 1,"error":"so \\"x\\""}\n'
    assert written(b"{}", Problem("so").line) == b'{"error":"so"}\n'
    assert written(b'{"a": 1', Problem("so", readable=False).line) == b'{"error":"so"}\n'


@pytest.mark.parametrize(
    ("name", "content", "prefix"),
    [
        ("rows.csv", "inputs,error\na,b\n", "fillmask_"),
        ("rows.csv", "inputs,fills,fillmask_error\na,b,c\n", "fillmask_fillmask_"),
        ("rows.jsonl", '{"inputs": "a"}\n{"fills": 1}\n', "fillmask_"),
        ("rows.jsonl", '{"inputs": "a", "fillsx": 1}\n', ""),
    ],
)
def test_added_fields_get_another_name_than_those_of_any_row(
    tmp_path: Path, name: str, content: str, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = tmp_path / name, tmp_path / "out.jsonl"
    path.write_text(content)
    rows = open_rows(path, "inputs")
    before = [row for block in rows.blocks() for row in block.known_fields()]
    with JsonRowWriter(rows, GIVEN).open(output) as write:
        for block in rows.blocks():
            write(block, [b"[]", Problem("so").line][: len(block)])
    added: list[Fields] = [{f"{prefix}fills": []}, {f"{prefix}error": "so"}]
    assert [json.loads(line) for line in output.read_text().splitlines()] == [
        row | more for row, more in zip(before, added, strict=False)
    ]
    notes = f"{name} has fields with the names of results, which therefore begin with {prefix}"
    assert capsys.readouterr().err.startswith(notes) == bool(prefix)


def test_a_prefix_that_makes_a_name_of_the_input_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("inputs,my_fills\n")
    with pytest.raises(CommandError) as caught:
        JsonRowWriter(open_rows(path, "inputs"), replace(GIVEN, prefix="my_"))
    assert str(caught.value) == (
        'rows.csv has the field "my_fills", which the output adds; set another --output-prefix.'
    )


def test_file_is_complete_at_the_end_of_its_with(tmp_path: Path) -> None:
    # Rows of any format become JSON objects.
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,é\n")
    rows = open_rows(path, "a")
    output = tmp_path / "out.jsonl"
    with JsonRowWriter(rows, GIVEN).open(output) as write:
        for block in rows.blocks():
            write(block, [b"[]"])
    assert output.read_text(encoding="utf-8") == '{"a":"1","b":"é","fills":[]}\n'
