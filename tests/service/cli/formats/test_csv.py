"""CSV out: a line for each fill, under a header that hangs on the options alone."""

import csv
import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.cli.errors import CommandError
from service.cli.formats.answers import Problem
from service.cli.formats.base import OutputOptions
from service.cli.formats.csv import CsvOutput
from service.cli.formats.open import open_rows
from service.tasks.options import FillOptions
from tests.service.cli.command_line import write_rows

ALWAYS = ["row", "mask", "rank", "score", "token", "token_str", "sequence"]
SOMETIMES = ["log_prob", "target_score", "tokens", "token_strs", "window"]
FILL = {"score": 0.5, "token": 7, "token_str": "a", "sequence": "a b"}


def write(
    source: Path,
    answers: Sequence[Any],
    options: FillOptions | None = None,
    *,
    errors: bool = False,
) -> list[list[str]]:
    """The lines that a file's rows become; an answer is fills or a problem."""
    rows = open_rows(source, "inputs")
    output = source.with_name("out.csv")
    lines = [a.line if isinstance(a, Problem) else json.dumps(a).encode() for a in answers]
    with CsvOutput(rows, OutputOptions(options or FillOptions(), errors)).writing(
        output
    ) as write_block:
        for block in rows.blocks():
            write_block(block, lines[block.first : block.first + len(block)])
    with output.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two rows of CSV."""
    path = tmp_path / "rows.csv"
    path.write_text('id,inputs\n7,"one, ""two"""\n8,"three\nfour"\n')
    return path


def test_a_line_for_each_fill(source: Path) -> None:
    """Its row's cells, which row, mask and rank it is, from 1, and the fill."""
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
    """And no more, whatever the answers are."""
    given = {"log_prob": -1.5, "target_score": 0.25, "tokens": [1, 2], "token_strs": ["x", "y"]}
    fill = FILL | given | {"window": [3, 9]}
    header, line, *_ = write(source, [[fill], [fill]], options)
    assert header == ["id", "inputs", *ALWAYS, *more]
    cells = ["-1.5", "0.25", "[1,2]", '["x","y"]', "[3,9]"]
    assert line[9:] == [cells[SOMETIMES.index(name)] for name in more]


def test_errors_have_a_column(source: Path) -> None:
    """It is empty beside fills; beside an error everything else of a fill is."""
    header, *lines = write(source, [Problem("so"), [FILL]], errors=True)
    assert header == ["id", "inputs", *ALWAYS, "error"]
    assert lines == [
        ["7", 'one, "two"', "1", *[""] * 6, "so"],
        ["8", "three\nfour", "2", "1", "1", "0.5", "7", "a", "a b", ""],
    ]


def test_rows_without_common_fields(tmp_path: Path) -> None:
    """The columns are all fields there are; what is no text is as in JSON; nothing is nothing."""
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
    """A date is a text without quotes."""
    path = tmp_path / "rows.parquet"
    columns = {"inputs": ["x"], "day": [dt.date(2020, 1, 2)], "n": pa.array([1], pa.int8())}
    pq.write_table(pa.table(columns), path)
    header, line = write(path, [[FILL]])
    assert header == ["inputs", "day", "n", *ALWAYS]
    assert line[:3] == ["x", "2020-01-02", "1"]


def test_no_rows_are_a_header(tmp_path: Path) -> None:
    """An empty output can be read."""
    path = tmp_path / "rows.txt"
    path.touch()
    assert write(path, []) == [["inputs", *ALWAYS]]


def test_a_mask_without_fills_has_no_line(source: Path) -> None:
    """Nothing is made up."""
    _, *lines = write(source, [[[], [FILL]], []])
    assert [line[2:5] for line in lines] == [["1", "2", "1"]]


@pytest.mark.parametrize("name", ["rank", "log_prob"])
def test_a_field_of_the_same_name_is_refused(tmp_path: Path, name: str) -> None:
    """Also if only one row has it."""
    path = write_rows(tmp_path / "rows.jsonl", [{"inputs": "x"}, {"inputs": "y", name: 1}])
    with pytest.raises(CommandError, match=f'rows.jsonl has a field "{name}"'):
        write(path, [[FILL], [FILL]])
