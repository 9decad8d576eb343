"""Choice of a format by the suffix of the file's name. Parquet needs pyarrow."""

import sys
from pathlib import Path

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import OutputOptions
from fillmask.cli.formats.by_extension import format_to_write, make_writer, open_rows
from fillmask.cli.formats.csv import CsvRows, CsvRowWriter
from fillmask.cli.formats.json import JsonArrayRows
from fillmask.cli.formats.jsonl import JsonRows, JsonRowWriter
from fillmask.cli.formats.lines import TextRows
from fillmask.cli.formats.parquet.writer import ParquetRowWriter
from fillmask.cli.tasks.fill_mask import FillMaskTask
from fillmask.parameters.fill_mask import FillOptions
from fillmask.tables.delimited import Dialect

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
        ("b.csv.gz", CsvRowWriter),
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
        open_rows(Path(name), "inputs")


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.jsonl.zst", "a.parquet.gz"])
def test_endings_that_are_only_read(name: str) -> None:
    with pytest.raises(
        CommandError,
        match=r"cannot write .*; .* .tsv or .parquet\. After the others than .parquet, it may "
        r"have .gz\.",
    ):
        format_to_write(Path(name))


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
        "b.parquet needs pyarrow, which is not installed here; use fillmask with its extra parquet "
        "(docs/install.md), or a file of another format."
    )
    path = tmp_path / "a.parquet"
    path.touch()
    with pytest.raises(CommandError, match=r"a.parquet needs pyarrow"):
        open_rows(path, "inputs")


@pytest.mark.parametrize("source", ["folder", "folder/a*.csv"])
def test_a_single_file_of_a_folder_may_have_any_format(tmp_path: Path, source: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.csv").write_text("inputs\na\n")
    rows = open_rows(tmp_path / source, "inputs")
    assert (rows.name, rows.count()) == ("a.csv", 1)


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("a.parquet", Dialect(encoding="cp1252")),
        ("a.txt", Dialect(delimiter=";")),
        ("a.jsonl", Dialect(quoting="none")),
    ],
)
def test_options_that_a_format_lacks_are_refused(
    tmp_path: Path, name: str, dialect: Dialect
) -> None:
    (tmp_path / name).touch()
    with pytest.raises(CommandError, match=rf"--[a-z]+ has no meaning for {name}; remove it\."):
        open_rows(tmp_path / name, "inputs", dialect)
