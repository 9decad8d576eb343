"""Requests made from rows and error messages for invalid rows."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.requests import Item, RowRequest, RowRequestReader, TextFields
from fillmask.cli.tasks import rows_of
from fillmask.errors import InvalidRequestError
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import TextPair
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from tests.service.cli.command_line import write_rows

LIMITS = Limits(
    max_tokens=32, max_texts=1, max_masks=9, max_top_k=50, max_passes=9, max_body_bytes=9
)

MISSING = 'The row has no field "inputs";'
EIGHT = ", ".join(f'"f{n}"' for n in range(8))
SELECT = "Select the field of the texts with --field."
SELECT_SECOND = "Select the field of the second texts with --text-pair-column."


def ask_of(path: Path, fields: TextFields, **parameters: object) -> Item:
    """Return the request of the only row of a file, or its problem."""
    rows = open_rows(path, fields.text)
    reader = RowRequestReader(rows_of("fill-mask"), fields, parameters, LIMITS, rows)
    [(_, [item])] = reader.read(0, None)
    return item


def ask(tmp_path: Path, row: dict[str, Any], field: str = "inputs", **parameters: object) -> Item:
    """Return the request of one JSONL row, or its problem."""
    path = write_rows(tmp_path / "rows.jsonl", [row])
    return ask_of(path, TextFields(field), **parameters)


def test_parameters_of_a_row_override_the_defaults(tmp_path: Path) -> None:
    # A null in the row keeps the default.
    row = {"x": "a", "parameters": {"top_k": 2, "strategy": None, "order": "left_to_right"}}
    item = ask(tmp_path, row, "x", top_k=7, strategy="joint")
    options = FillMaskParameters(top_k=2, strategy="joint", order="left_to_right")
    assert item == RowRequest("a", options)
    assert ask(tmp_path, {"inputs": "a", "parameters": None}) == RowRequest(
        "a", FillMaskParameters()
    )


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"inputs": ""}, 'inputs must be a non-empty text (got "").'),
        ({"inputs": None}, "inputs must be a non-empty text (got null)."),
        ({"inputs": ["a"]}, "inputs must be a non-empty text (got a list)."),
        ({"text": "a", "id": 1}, f'{MISSING} it has "text", "id". {SELECT}'),
        (
            {f"f{n}": 1 for n in range(100)},
            f"{MISSING} it has {EIGHT} and others. {SELECT}",
        ),
        ({}, f"{MISSING} it has no fields. {SELECT}"),
        ({"inputs": "a", "parameters": 1}, "parameters must be a JSON object (got 1)."),
    ],
)
def test_bad_rows(tmp_path: Path, row: dict[str, Any], sentence: str) -> None:
    assert ask(tmp_path, row) == sentence


@pytest.mark.parametrize(
    ("row", "optional", "item"),
    [
        ({"inputs": "a", "p": "b"}, False, RowRequest(TextPair("a", "b"), FillMaskParameters())),
        ({"inputs": "a", "p": ""}, True, RowRequest("a", FillMaskParameters())),
        ({"inputs": "a"}, True, RowRequest("a", FillMaskParameters())),
        ({"inputs": "a", "p": 3}, True, "p must be a non-empty text (got 3)."),
        ({"inputs": "a", "p": None}, False, "p must be a non-empty text (got null)."),
        ({"inputs": "a"}, False, f'The row has no field "p"; it has "inputs". {SELECT_SECOND}'),
    ],
)
def test_pairs(tmp_path: Path, row: dict[str, Any], *, optional: bool, item: Item) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [row])
    assert ask_of(path, TextFields("inputs", "p", optional_pair=optional)) == item


def test_default_parameters_are_validated_first(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"top_k must be a whole number"):
        ask(tmp_path, {"inputs": "a"}, top_k="x")


def test_columns_of_csv(tmp_path: Path) -> None:
    # A column with the name `parameters` has no effect.
    path = tmp_path / "rows.csv"
    path.write_text("inputs,parameters\na,b\n")
    assert ask_of(path, TextFields("inputs")) == RowRequest("a", FillMaskParameters())
    with pytest.raises(CommandError) as caught:
        ask_of(path, TextFields("inputs", "text"))
    assert str(caught.value) == (
        f'rows.csv has no column "text"; it has "inputs", "parameters". {SELECT_SECOND} Line 1 '
        "must name the columns; --delimiter sets what separates them."
    )


def test_values_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = {
        "inputs": pa.array([Decimal(1)]),
        "text": pa.array(["a"]),
        "parameters": pa.array([{"top_k": 3, "order": None}]),
    }
    pq.write_table(pa.table(columns), path)
    assert ask_of(path, TextFields("inputs")) == (
        "inputs must be a non-empty text (got a value of type Decimal)."
    )
    assert ask_of(path, TextFields("text"), top_k=4) == RowRequest("a", FillMaskParameters(top_k=3))
