"""Paths: what cannot be read or is not to be written is told before anything is done."""

from pathlib import Path
from typing import NoReturn

import pytest

from service.cli.errors import CommandError
from service.cli.formats.open import check_input
from service.cli.resume.job import parts_directory
from service.cli.whole_file import check_new, check_output


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An input."""
    path = tmp_path / "in.jsonl"
    path.touch()
    return path


def test_inputs_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing, no file, or of another format."""
    (tmp_path / "d.csv").mkdir()
    for name, sentence in (
        ("none.csv", "none.csv cannot be read: no such file or directory."),
        ("d.csv", "d.csv is no file."),
        (
            "a.json",
            (
                '"a.json" is of no format that is read; these end in .jsonl, .ndjson, .csv, '
                ".parquet or .txt."
            ),
        ),
    ):
        with pytest.raises(CommandError) as caught:
            check_input(tmp_path / name)
        assert str(caught.value).endswith(sentence)


def test_an_input_that_one_may_not_read(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the system's words."""

    def refuse(_path: Path, _mode: str) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CommandError, match=r"in.jsonl cannot be read: permission denied\."):
        check_input(source)


def test_outputs_that_are_not_to_be_written(tmp_path: Path, source: Path) -> None:
    """Of another format, nowhere, the input itself, or there already."""
    there = tmp_path / "there.csv"
    there.touch()
    for path, sentence in (
        (tmp_path / "a.txt", "these end in .jsonl, .ndjson, .csv or .parquet."),
        (
            tmp_path / "none/a.csv",
            f"none/a.csv cannot be written: {tmp_path}/none is no directory.",
        ),
        (source, "in.jsonl is the input, which is not replaced."),
        (tmp_path / "." / "in.jsonl", "in.jsonl is the input, which is not replaced."),
        (there, "there.csv is there already; --overwrite replaces it."),
    ):
        with pytest.raises(CommandError) as caught:
            check_output(path, source, overwrite=False)
        assert str(caught.value).endswith(sentence)
    check_output(there, source, overwrite=True)
    with pytest.raises(CommandError, match="is the input"):
        check_output(source, source, overwrite=True)


def test_an_output_beside_its_parts_may_be_the_jobs_own(tmp_path: Path, source: Path) -> None:
    """Whether it is, the job knows."""
    there = tmp_path / "there.csv"
    there.touch()
    parts_directory(there).mkdir()
    check_output(there, source, overwrite=False)
    with pytest.raises(CommandError, match="is there already"):
        check_new(there, overwrite=False)


def test_a_directory_is_never_replaced(tmp_path: Path) -> None:
    """Not even with --overwrite."""
    path = tmp_path / "d.csv"
    path.mkdir()
    with pytest.raises(CommandError, match=r"d.csv is a directory"):
        check_new(path, overwrite=True)
