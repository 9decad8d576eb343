"""Requests made from rows and error messages for invalid rows."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.answers import Problem
from fillmask.cli.formats.base import Rows
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.requests import (
    Item,
    RowRequest,
    RowRequestReader,
    TextFields,
)
from fillmask.cli.tasks.fill_mask import FillMaskTask
from fillmask.errors import InvalidRequestError
from fillmask.parameters.fill_mask import FillOptions
from fillmask.parameters.limits import Limits
from tests.service.cli.command_line import write_rows

LIMITS = Limits(
    max_tokens=32, max_texts=1, max_masks=9, max_top_k=50, max_passes=9, max_body_bytes=9
)


def reader_of(
    field: str,
    parameters: Mapping[str, Any],
    limits: Limits,
    rows: Rows,
    reserved: tuple[str, ...],
) -> RowRequestReader:
    """Return a reader of fill requests without pairs."""
    return RowRequestReader(FillMaskTask(), TextFields(field), parameters, limits, rows, reserved)


def ask(
    tmp_path: Path,
    row: dict[str, Any],
    field: str = "inputs",
    reserved: tuple[str, ...] = (),
    **parameters: object,
) -> Item:
    """Return the request of one JSONL row, or the problem of an invalid row."""
    rows = open_rows(write_rows(tmp_path / "rows.jsonl", [row]), field)
    [(_, [item])] = RowRequestReader(
        FillMaskTask(), TextFields(field), parameters, LIMITS, rows, reserved
    ).read(0, None)
    return item


def test_a_text_and_the_parameters_of_all(tmp_path: Path) -> None:
    # The field with the text may have any name.
    item = ask(tmp_path, {"x": "a [MASK]", "y": [1]}, "x", top_k=3)
    assert item == RowRequest("a [MASK]", FillOptions(top_k=3))


def test_parameters_of_a_row_override_the_defaults(tmp_path: Path) -> None:
    # A null in the row keeps the default.
    row = {"inputs": "a", "parameters": {"top_k": 2, "strategy": None, "order": "left_to_right"}}
    item = ask(tmp_path, row, top_k=7, strategy="joint")
    options = FillOptions(top_k=2, strategy="joint", order="left_to_right")
    assert item == RowRequest("a", options)
    assert ask(tmp_path, {"inputs": "a", "parameters": None}) == RowRequest("a", FillOptions())


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"inputs": ""}, 'inputs must be a non-empty text (got "").'),
        ({"inputs": None}, "inputs must be a non-empty text (got null)."),
        ({"inputs": 5}, "inputs must be a non-empty text (got 5)."),
        ({"inputs": ["a"]}, "inputs must be a non-empty text (got a list)."),
        (
            {"text": "a", "id": 1},
            (
                'The row has no field "inputs"; it has "text", "id". Select the field '
                "of the texts with --field."
            ),
        ),
        (
            {},
            (
                'The row has no field "inputs"; it has no fields. Select the field of the texts '
                "with --field."
            ),
        ),
        ({"inputs": "a", "parameters": 1}, "parameters must be a JSON object (got 1)."),
        (
            {"inputs": "a", "parameters": {"top_k": 0}},
            "top_k must be a whole number from 1 to 50 (got 0).",
        ),
        (
            {"inputs": "a", "parameters": {"topk": 1}},
            (
                'Unknown field "topk" in parameters; allowed: top_k, targets, granularity, '
                "max_word_tokens, strategy, order, on_long_text."
            ),
        ),
        (
            {"inputs": "a", "parameters": {"targets": ["x"], "strategy": "joint"}},
            'targets and strategy "joint" exclude each other; choose one.',
        ),
    ],
)
def test_bad_rows(tmp_path: Path, row: dict[str, Any], sentence: str) -> None:
    # The messages equal those of the HTTP API.
    assert ask(tmp_path, row) == Problem(sentence)


def test_unreadable_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"nothing\n")
    [(_, [item])] = RowRequestReader(
        FillMaskTask(), TextFields("x"), {}, LIMITS, open_rows(path, "x"), ()
    ).read(0, None)
    assert isinstance(item, Problem)
    assert not item.readable


def test_messages_name_at_most_eight_fields(tmp_path: Path) -> None:
    item = ask(tmp_path, {f"f{n}": 1 for n in range(100)})
    assert isinstance(item, Problem)
    assert '"f6", "f7" and others. Select' in item.message


def test_reserved_field_name_is_a_problem(tmp_path: Path) -> None:
    # The output for a row with a reserved field has none of the row's fields.
    item = ask(tmp_path, {"inputs": "a", "fills": 1}, reserved=("fills", "error"))
    assert item == Problem(
        'The row has the field "fills", which the output adds; set another --output-prefix.',
        readable=False,
    )
    assert isinstance(ask(tmp_path, {"inputs": "a", "fills": 1}), RowRequest)


def test_default_parameters_are_validated_first(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"top_k must be a whole number"):
        ask(tmp_path, {"inputs": "a"}, top_k="x")


def test_missing_column(tmp_path: Path) -> None:
    # In CSV input, a column with the name `parameters` has no effect.
    path = tmp_path / "rows.csv"
    path.write_text("inputs,parameters\na,b\n")
    rows = open_rows(path, "inputs")
    [(_, items)] = RowRequestReader(
        FillMaskTask(), TextFields("inputs"), {}, LIMITS, rows, ()
    ).read(0, None)
    assert items == [RowRequest("a", FillOptions())]
    with pytest.raises(CommandError) as caught:
        reader_of("text", {}, LIMITS, rows, ())
    assert str(caught.value) == (
        'rows.csv has no column "text"; it has "inputs", "parameters". Select the '
        "field of the texts with --field. Line 1 must name the columns; --delimiter sets what "
        "separates them."
    )


def test_parquet_values_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = {
        "inputs": pa.array([Decimal(1)]),
        "text": pa.array(["a"]),
        "parameters": pa.array([{"top_k": 3, "order": None}]),
    }
    pq.write_table(pa.table(columns), path)
    rows = open_rows(path, "inputs")
    [(_, [item])] = RowRequestReader(
        FillMaskTask(), TextFields("inputs"), {}, LIMITS, rows, ()
    ).read(0, None)
    assert item == Problem("inputs must be a non-empty text (got a value of type Decimal).")
    [(_, [item])] = RowRequestReader(
        FillMaskTask(), TextFields("text"), {"top_k": 4}, LIMITS, rows, ()
    ).read(0, None)
    assert item == RowRequest("a", FillOptions(top_k=3))
