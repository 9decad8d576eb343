"""JSONL out: the row to the byte, and its fills behind it."""

import io
import json
from pathlib import Path

import pytest

from service.command.answers import Problem
from service.command.errors import CommandError
from service.command.formats import open_rows
from service.command.json_output import JsonOutput, write_lines
from service.command.line_rows import JsonBlock
from service.command.outputs import Given
from service.tasks.options import FillOptions
from tests.service.command.command_line import write_rows

GIVEN = Given(FillOptions(), errors=True)


def written(row: bytes, answer: bytes) -> bytes:
    """What a row becomes."""
    stream = io.BytesIO()
    write_lines(stream)(JsonBlock(0, [row]), [answer])
    return stream.getvalue()


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (b'{"a":1.00e3, "b" : "\\u00e9"}', b'{"a":1.00e3, "b" : "\\u00e9","fills":[]}\n'),
        (b' { "a": 1 }\t', b'{ "a": 1,"fills":[]}\n'),
        (b'{"a": "}"}', b'{"a": "}","fills":[]}\n'),
    ],
)
def test_a_row_is_as_it_was(row: bytes, line: bytes) -> None:
    """No number, escape or space of it changes, and there is one more field."""
    assert written(row, b"[]") == line
    assert json.loads(line) == json.loads(row) | {"fills": []}


def test_problems_are_in_a_field_of_their_own() -> None:
    """A row that could not be read has no other."""
    assert written(b'{"a": 1}', Problem('so "x"').line) == b'{"a": 1,"error":"so \\"x\\""}\n'
    assert written(b"{}", Problem("so").line) == b'{"error":"so"}\n'
    assert written(b'{"a": 1', Problem("so", readable=False).line) == b'{"error":"so"}\n'


def test_a_column_of_the_same_name_is_refused(tmp_path: Path) -> None:
    """Known before a row is read; of JSONL, whose rows have fields of their own, row by row."""
    path = tmp_path / "rows.csv"
    path.write_text("inputs,error\na,b\n")
    rows = open_rows(path, "inputs")
    with pytest.raises(CommandError, match=r'rows.csv has a field "error"'):
        JsonOutput(rows, GIVEN)
    assert JsonOutput(rows, Given(FillOptions(), errors=False)).reserved == ()
    jsonl = open_rows(write_rows(tmp_path / "rows.jsonl", [{"error": 1}]), "inputs")
    assert JsonOutput(jsonl, GIVEN).reserved == ("fills", "error")


def test_a_file_is_whole_at_the_end_of_its_with(tmp_path: Path) -> None:
    """Rows of any format become objects."""
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,é\n")
    rows = open_rows(path, "a")
    output = tmp_path / "out.jsonl"
    with JsonOutput(rows, GIVEN).writing(output) as write:
        for block in rows.blocks():
            write(block, [b"[]"])
    assert output.read_text(encoding="utf-8") == '{"a":"1","b":"é","fills":[]}\n'
