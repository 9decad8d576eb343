"""Choice of a format by the suffix of the file's name. Parquet needs pyarrow."""

import sys
from pathlib import Path

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.by_extension import format_to_write, open_rows
from fillmask.tables.delimited import Dialect
from tests.service.cli.formats.written import write


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
        write(path, "parquet", [])
    assert str(caught.value) == (
        "out.parquet needs pyarrow, which is not installed here; use fillmask with its extra "
        "parquet (docs/install.md), or a file of another format."
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
