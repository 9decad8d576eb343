"""Formats: by their endings, and Parquet only where pyarrow is."""

import sys
from pathlib import Path

import pytest

from service.cli.errors import CommandError
from service.cli.formats.base import OutputOptions
from service.cli.formats.csv import CsvOutput, CsvRows
from service.cli.formats.jsonl import JsonOutput, JsonRows, TextRows
from service.cli.formats.open import READ, WRITTEN, check_ending, make_output, open_rows
from service.cli.formats.parquet import ParquetOutput
from service.tasks.options import FillOptions

GIVEN = OutputOptions(FillOptions(), errors=False)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.jsonl", JsonRows), ("a.NDJSON", JsonRows), ("a.csv", CsvRows), ("a.txt", TextRows)],
)
def test_what_is_read(tmp_path: Path, name: str, kind: type) -> None:
    """Upper case is the same."""
    path = tmp_path / name
    path.write_text("inputs\n")
    assert type(open_rows(path, "inputs")) is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("b.jsonl", JsonOutput),
        ("b.ndjson", JsonOutput),
        ("b.Csv", CsvOutput),
        ("b.parquet", ParquetOutput),
    ],
)
def test_what_is_written(tmp_path: Path, name: str, kind: type) -> None:
    """Of rows of any format."""
    path = tmp_path / "a.txt"
    path.touch()
    output = make_output(tmp_path / name, open_rows(path, "inputs"), GIVEN)
    assert type(output) is kind


@pytest.mark.parametrize("name", ["a", "a.json", "a.tsv", "a.jsonl.gz", ".csv"])
def test_other_endings_are_refused(name: str) -> None:
    """With those that are allowed."""
    with pytest.raises(CommandError, match=r"is of no format that is read; these end in .jsonl,"):
        check_ending(Path(name), READ)
    with pytest.raises(CommandError, match=r"is written; .* .csv or .parquet\."):
        check_ending(Path("a.txt"), WRITTEN)


def test_parquet_without_pyarrow_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading and writing."""
    for module in ("pyarrow", "service.cli.formats.parquet", "service.cli.formats.parquet"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "a.txt"
    path.touch()
    with pytest.raises(CommandError) as caught:
        make_output(tmp_path / "b.parquet", open_rows(path, "inputs"), GIVEN)
    assert str(caught.value) == (
        "b.parquet needs pyarrow, which is left out of the install: pip install 'fillmask[parquet]'"
    )
    with pytest.raises(CommandError, match=r"a.parquet needs pyarrow"):
        open_rows(tmp_path / "a.parquet", "inputs")
