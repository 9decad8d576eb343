"""Checks of the input's and the output's path before a job begins."""

from pathlib import Path

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.job import answers_file
from fillmask.cli.whole_file import check_new, check_output


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.touch()
    return path


def test_inputs_that_cannot_be_read(tmp_path: Path) -> None:
    for folder in ("d.csv", "two", "part=1/b.parquet"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("a.csv", "b.parquet", "_SUCCESS", ".b.crc"):
        (tmp_path / "two" / name).touch()
    for name, sentence in (
        (
            "none.csv",
            "none.csv (no such file or directory); give a readable file.",
        ),
        ("d.csv", "d.csv has no files; set --input to a file, a folder or a pattern."),
        ("*.parquet", "*.parquet has no files; set --input to a file, a folder or a pattern."),
        (
            "two",
            (
                "two has several files, of which a.csv is not Parquet; set --input to one file, "
                "or to "
                "a pattern such as '*.parquet'."
            ),
        ),
        ("part=1", "part=1/b.parquet is not a file; set --input to a file."),
        (
            "a.xml",
            (
                'The command cannot read "a.xml"; the name must end in .jsonl, .ndjson, .csv, '
                ".tsv, .json, .txt or .parquet. After .jsonl, .ndjson, .csv, .tsv, .json or .txt, "
                "it may have .gz, .zst or .xz."
            ),
        ),
    ):
        with pytest.raises(CommandError) as caught:
            open_rows(tmp_path / name, "inputs")
        assert str(caught.value).endswith(sentence)


def test_outputs_that_must_not_be_written(tmp_path: Path, source: Path) -> None:
    there = tmp_path / "there.csv"
    there.touch()
    link = tmp_path / "link.jsonl"
    link.symlink_to(source)
    for path, sentence in (
        (
            tmp_path / "a.txt",
            (
                "the name must end in .jsonl, .ndjson, .csv, .tsv or .parquet. After the others "
                "than .parquet, it may have .gz."
            ),
        ),
        (
            tmp_path / "none/a.csv",
            f"{tmp_path}/none/a.csv; {tmp_path}/none must be a directory.",
        ),
        (source, "in.jsonl is the input file; choose another --output."),
        (link, "link.jsonl is the input file; choose another --output."),
        (there, "there.csv already exists; use --overwrite to replace it."),
    ):
        with pytest.raises(CommandError) as caught:
            check_output(path, source, [source], overwrite=False)
        assert str(caught.value).endswith(sentence)
    check_output(there, source, [source], overwrite=True)
    with pytest.raises(CommandError, match="is the input"):
        check_output(source, source, [source], overwrite=True)


@pytest.mark.parametrize("source", ["", "part-*.jsonl"])
def test_an_output_among_the_next_inputs_is_refused(tmp_path: Path, source: str) -> None:
    path = tmp_path / "part-9.jsonl"
    with pytest.raises(CommandError, match=r"The next run would read .*part-9.jsonl as input"):
        check_output(path, tmp_path / source, [tmp_path / "part-0.jsonl"], overwrite=True)


def test_output_beside_its_parts_is_left_to_the_job(tmp_path: Path, source: Path) -> None:
    # The job, not this check, rejects an output that belongs to another job.
    there = tmp_path / "there.csv"
    there.touch()
    with pytest.raises(CommandError, match="already exists"):  # no job has written it
        check_output(there, source, [source], overwrite=False)
    answers_file(there).touch()
    check_output(there, source, [source], overwrite=False)
    with pytest.raises(CommandError, match="already exists"):
        check_new(there, overwrite=False)


def test_overwrite_does_not_replace_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.mkdir()
    with pytest.raises(CommandError, match=r"d.csv is a directory"):
        check_new(path, overwrite=True)
