"""JSONL and plain text: every line is a row, good or bad."""

import json
from pathlib import Path

import pytest

from service.command import line_rows
from service.command.formats import open_rows
from service.command.lines import read_lines
from service.command.rows import BLOCK_ROWS, Fields, Unreadable


def fields_of(path: Path, start: int = 0, stop: int | None = None) -> list[Fields | Unreadable]:
    """The rows of a file."""
    rows = open_rows(path, "text")
    return [row for block in rows.blocks(start, stop) for row in block.fields()]


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    """A file with good and bad rows."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"a": 1}\r\n'
        b'{"a": \n'
        b"\n"
        b"[1]\n"
        b'{"a": NaN}\n'
        b'{"a": 1, "a": 2}\n'
        b'{"a": "\xff"}\n'
        b'{"a": "\\ud800"}\n'
        b'  {"a": "x\\ny", "b": 12345678901234567890}  '
    )
    return path


def test_json_lines(jsonl: Path) -> None:
    """Objects are rows; anything else says what is wrong, and in which line."""
    rows = fields_of(jsonl)
    assert open_rows(jsonl, "text").count() == len(rows) == 9
    assert rows[0] == {"a": 1}
    assert rows[8] == {"a": "x\ny", "b": 12345678901234567890}
    assert [row.sentence for row in rows if isinstance(row, Unreadable)] == [
        "The line is not valid JSON: expecting value (line 2, column 7).",
        "The line is empty; it must be a JSON object.",
        "The line must be a JSON object.",
        "The line is not valid JSON: NaN is not a JSON number.",
        'The field "a" is given twice.',
        "The line is not valid UTF-8.",
        "The line has an escape that is half a surrogate pair, which is no character.",
    ]


def test_json_lines_are_kept_to_the_byte(tmp_path: Path) -> None:
    """Numbers, escapes and spaces stay as they were written."""
    line = b'{ "a":1.00e3,  "b" : "\\u00e9"}'
    path = tmp_path / "rows.ndjson"
    path.write_bytes(b"  " + line + b" \r\n")
    [block] = open_rows(path, "text").blocks()
    assert block.json_objects() == [line]


def test_a_line_that_is_too_long_is_a_bad_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those around it are good."""
    monkeypatch.setattr(line_rows, "MAX_LINE_BYTES", 50)
    monkeypatch.setattr(read_lines, "__defaults__", (50,))
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * 100 + b'"}\n{"a": 2}\n')
    long = Unreadable("The line is longer than 50 bytes.")
    assert fields_of(path) == [{"a": 1}, long, {"a": 2}]
    [block] = open_rows(path, "text").blocks()
    assert block.json_objects()[1] == b"{}"


def test_text_lines(tmp_path: Path) -> None:
    """Each line is a text, an empty one too; only line feeds end them."""
    path = tmp_path / "texts.txt"
    path.write_bytes("one\r\n\n  two\u2028 \n".encode() + b"\xff\n")
    assert fields_of(path) == [
        {"text": "one"},
        {"text": ""},
        {"text": "  two\u2028 "},
        Unreadable("The line is not valid UTF-8."),
    ]
    assert open_rows(path, "text").columns == ("text",)


@pytest.mark.parametrize("name", ["rows.jsonl", "texts.txt"])
def test_an_empty_file_has_no_rows(tmp_path: Path, name: str) -> None:
    """Not one that is empty."""
    path = tmp_path / name
    path.touch()
    assert fields_of(path) == []
    assert open_rows(path, "text").count() == 0


def test_any_part_of_a_file(tmp_path: Path) -> None:
    """From one row to before another, in blocks that know their numbers."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps({'n': n})}\n" for n in range(3 * BLOCK_ROWS)))
    for start, stop in [(0, 5), (BLOCK_ROWS - 1, BLOCK_ROWS + 1), (700, None), (9, 9)]:
        rows = fields_of(path, start, stop)
        assert rows == [{"n": n} for n in range(3 * BLOCK_ROWS)][start:stop]
    [block] = open_rows(path, "text").blocks(10, 20)
    part = block.part(3, 5)
    assert (part.first, len(part), part.fields()) == (13, 2, [{"n": 13}, {"n": 14}])


@pytest.mark.parametrize("end", [b"\n", b"\n\n\n", b"\r\n\r\n", b"\n \t\r\n  ", b"\n" * 1000])
@pytest.mark.parametrize("name", ["rows.jsonl", "texts.txt"])
def test_blank_lines_at_the_end_are_no_rows(tmp_path: Path, name: str, end: bytes) -> None:
    """A blank line before another is one that says nothing."""
    path = tmp_path / name
    path.write_bytes(b'{"text": 1}\n\n \n{"text": 2}' + end)
    rows = open_rows(path, "text")
    assert rows.count() == 4
    first, *blank, last = fields_of(path)
    line = Unreadable("The line is empty; it must be a JSON object.")
    assert blank == ([line] * 2 if name == "rows.jsonl" else [{"text": ""}] * 2)
    assert "1" in str(first)
    assert "2" in str(last)
    path.write_bytes(b"\xef\xbb\xbf" + end)
    assert (rows.count(), fields_of(path)) == (0, [])
