"""JSONL and plain text. JSONL output keeps all bytes of a row and adds one field."""

import json
from pathlib import Path

import pytest

from fillmask.cli.formats import lines
from fillmask.cli.formats.base import BLOCK_ROWS
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.formats.lines import drop_trailing_blanks
from fillmask.tables.streams import ENCODE, read_lines
from tests.service.cli.command_line import dice, fields_in, rows_in
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


def test_any_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    count = 3 * BLOCK_ROWS
    path.write_text("".join(f"{json.dumps({'n': n})}\n" for n in range(count)))
    rows = open_rows(path, "text")
    whole = [{"n": n} for n in range(count)]
    for start, stop in [(0, 5), (0, 0), (BLOCK_ROWS - 1, BLOCK_ROWS + 1), (700, None), (9, 9)]:
        assert fields_in(rows, start, stop) == whole[start:stop]
        blocks = list(rows.blocks(start, stop))
        assert all(0 < len(block) <= BLOCK_ROWS for block in blocks)
        assert [block.rows()[0].fields["n"] for block in blocks] == [one.first for one in blocks]
    [block] = rows.blocks(10, 20)
    part = block.slice(3, 5)
    assert (part.first, [row.fields for row in part.rows()]) == (13, [{"n": 13}, {"n": 14}])


@pytest.mark.parametrize("end", [b"\n", b"\r\n\r\n", b"\n \t\r\n  ", b"\n" * 1000])
@pytest.mark.parametrize("name", ["rows.jsonl", "texts.txt"])
def test_blank_lines_at_the_end_are_no_rows(tmp_path: Path, name: str, end: bytes) -> None:
    # A blank line before other rows is an unreadable row.
    path = tmp_path / name
    path.write_bytes(b'{"text": 1}\n\n \n{"text": 2}' + end)
    rows = open_rows(path, "text")
    assert rows.count() == 4
    first, *blank, last = fields_in(rows)
    assert blank == [EMPTY if name == "rows.jsonl" else {"text": ""}] * 2
    assert ("1" in str(first), "2" in str(last)) == (True, True)
    path.write_bytes(b"\xef\xbb\xbf" + end)
    assert (rows.count(), fields_in(rows)) == (0, [])


def test_blank_lines_are_dropped_only_at_the_end() -> None:
    rng = dice()
    for _ in range(50):
        items = rng.choices([b"", b"", b"", b"1"], k=rng.randint(0, 9))
        items += [b""] * rng.choice([0, 3, 2 * BLOCK_ROWS, 2 * BLOCK_ROWS + 3])
        items += rng.choices([b"", b"1"], k=rng.randint(0, 3))
        rest, batches = items, []
        while rest:
            size = rng.randint(1, 200)
            batches.append(rest[:size])
            rest = rest[size:]
        expected = b"".join(item or b"0" for item in items).rstrip(b"0")
        found = list(drop_trailing_blanks(batches))
        assert b"".join(item or b"0" for batch in found for item in batch) == expected
