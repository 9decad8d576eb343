"""Choice of a format by the suffix of the file's name. Parquet needs pyarrow."""

import sys
from pathlib import Path

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import OutputOptions
from fillmask.cli.formats.by_extension import check_input, check_output_name, make_writer, open_rows
from fillmask.cli.formats.csv import CsvRows, CsvRowWriter
from fillmask.cli.formats.json import JsonArrayRows
from fillmask.cli.formats.jsonl import JsonRows, JsonRowWriter
from fillmask.cli.formats.parquet.writer import ParquetRowWriter
from fillmask.cli.formats.text import TextRows
from fillmask.cli.tasks.fill_mask import FillMaskTask
from fillmask.parameters.fill_mask import FillOptions

GIVEN = OutputOptions(FillMaskTask(), FillOptions(), report_errors=False)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", JsonRows),
        ("a.NDJSON", JsonRows),
        ("a.csv", CsvRows),
        ("a.tsv", CsvRows),
        ("a.json", JsonArrayRows),
        ("a.txt", TextRows),
    ],
)
def test_endings_that_can_be_read(tmp_path: Path, name: str, kind: type) -> None:
    # The case of the suffix does not matter.
    path = tmp_path / name
    path.write_text("inputs\n")
    assert type(open_rows(path, "inputs")) is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("b.jsonl", JsonRowWriter),
        ("b.ndjson", JsonRowWriter),
        ("b.Csv", CsvRowWriter),
        ("b.tsv", CsvRowWriter),
        ("b.parquet", ParquetRowWriter),
    ],
)
def test_endings_that_can_be_written(tmp_path: Path, name: str, kind: type) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    output = make_writer(tmp_path / name, open_rows(path, "inputs"), GIVEN)
    assert type(output) is kind


@pytest.mark.parametrize("name", ["a", "a.xml", "a.gz", "a.jsonl.bz2", "a.parquet.gz", ".csv"])
def test_other_endings_are_rejected(name: str) -> None:
    with pytest.raises(CommandError, match=r"cannot read .*; the name must end in .jsonl,"):
        check_input(Path(name))


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.jsonl.gz"])
def test_endings_that_are_only_read(name: str) -> None:
    with pytest.raises(CommandError, match=r"cannot write .*; .* .tsv or .parquet\."):
        check_output_name(Path(name))


def test_parquet_without_pyarrow_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("rows", "writer"):
        monkeypatch.delitem(sys.modules, f"fillmask.cli.formats.parquet.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "a.txt"
    path.touch()
    with pytest.raises(CommandError) as caught:
        make_writer(tmp_path / "b.parquet", open_rows(path, "inputs"), GIVEN)
    assert str(caught.value) == (
        "b.parquet needs pyarrow, which is not installed; run pip install '.[parquet]' in "
        "a checkout, or pip install 'PATH/TO/WHEEL[parquet]'."
    )
    for name in ("a.parquet", "a.txt.zst"):
        with pytest.raises(CommandError, match=f"{name} needs pyarrow"):
            open_rows(tmp_path / name, "inputs")
