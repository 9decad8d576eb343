"""Requests made from rows and error messages for invalid rows."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fillmask.cli.commands import RowsCommand
from fillmask.cli.errors import CommandError
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.pipeline import Item
from fillmask.cli.work import Work
from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import TextPair
from fillmask.settings import Settings
from fillmask.tasks.classify.parameters import ClassifyParameters
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.pipeline import Inputs
from tests.service.cli.command_line import write_rows

Ask = Callable[..., Item]

MISSING = 'The row has no field "inputs";'
EIGHT = ", ".join(f'"f{n}"' for n in range(8))
SELECT = "Select the field of the texts with --field."
PAIR = Inputs([TextPair("a", "b")], [ClassifyParameters()])
SINGLE = Inputs(["a"], [ClassifyParameters()])
SELECT_SECOND = "Select the field of the second texts with --text-pair-column."


@pytest.fixture
def ask(both: Path, tmp_path: Path) -> Ask:
    """Function that returns the request of the only row of a file, or its problem."""

    def run(source: Path | dict[str, Any], field: str = "inputs", **options: Any) -> Item:
        if isinstance(source, dict):
            source = write_rows(tmp_path / "rows.jsonl", [source])
        options = {"parameters": {}, **options}
        command = RowsCommand(input=source, output=None, field=field, **options)
        [(_, [item])] = Work(command, open_rows(source, field), Settings(bundle=both)).requests()
        return item

    return run


def test_parameters_of_a_row_override_the_defaults(ask: Ask) -> None:
    # A null in the row keeps the default.
    row = {"x": "a", "parameters": {"top_k": 2, "strategy": None, "order": "left_to_right"}}
    item = ask(row, "x", parameters={"top_k": 7, "strategy": "joint"})
    options = FillMaskParameters(top_k=2, strategy="joint", order="left_to_right")
    assert item == Inputs(["a"], [options], "x")
    assert ask({"inputs": "a", "parameters": None}) == Inputs(["a"], [FillMaskParameters()])


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
def test_bad_rows(ask: Ask, row: dict[str, Any], sentence: str) -> None:
    assert ask(row) == sentence


@pytest.mark.parametrize(
    ("row", "column", "found"),
    [
        ({"inputs": "a", "p": "b"}, "p", PAIR),
        ({"inputs": "a", "p": None}, "p", "p must be a non-empty text (got null)."),
        ({"inputs": "a"}, "p", f'The row has no field "p"; it has "inputs". {SELECT_SECOND}'),
        # by default, a second text only in the rows that have one
        ({"inputs": "a", "text_pair": "b"}, None, PAIR),
        ({"inputs": "a", "text_pair": ""}, None, SINGLE),
        ({"inputs": "a"}, None, SINGLE),
        ({"inputs": "a", "text_pair": 3}, None, "text_pair must be a non-empty text (got 3)."),
    ],
)
def test_pairs(ask: Ask, row: dict[str, Any], column: str | None, found: Item) -> None:
    assert ask(row, task="classify", text_pair_column=column) == found


def test_default_parameters_are_validated_first(ask: Ask) -> None:
    with pytest.raises(InvalidRequestError, match=r"top_k must be a whole number"):
        ask({"inputs": "a"}, parameters={"top_k": "x"})


def test_columns_of_csv(ask: Ask, tmp_path: Path) -> None:
    # A column with the name `parameters` has no effect.
    path = tmp_path / "rows.csv"
    path.write_text("inputs,parameters\na,b\n")
    assert ask(path) == Inputs(["a"], [FillMaskParameters()])
    with pytest.raises(CommandError) as caught:
        ask(path, text_pair_column="text")
    assert str(caught.value) == (
        f'rows.csv has no column "text"; it has "inputs", "parameters". {SELECT_SECOND} Line 1 '
        "must name the columns; --delimiter sets what separates them."
    )


def test_values_of_parquet(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = {
        "inputs": pa.array([Decimal(1)]),
        "text": pa.array(["a"]),
        "parameters": pa.array([{"top_k": 3, "order": None}]),
    }
    pq.write_table(pa.table(columns), path)
    assert ask(path) == "inputs must be a non-empty text (got a value of type Decimal)."
    item = ask(path, "text", parameters={"top_k": 4})
    assert item == Inputs(["a"], [FillMaskParameters(top_k=3)], "text")
