"""Checks of the output's path before a job begins. Those of the input are in formats."""

from pathlib import Path

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.files import check_output
from fillmask.cli.job import answers_file

ENDING = (
    "the name must end in .jsonl, .ndjson, .csv, .tsv or .parquet. After the others than .parquet, "
    "it may have .gz."
)
INPUT = "is the input file; choose another --output."


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Input, beside a link to it, a directory, and outputs of a user and of a job."""
    path = tmp_path / "in.jsonl"
    (tmp_path / "link.jsonl").symlink_to(path)
    for file in (path, tmp_path / "there.csv", tmp_path / "begun.csv"):
        file.touch()
    answers_file(tmp_path / "begun.csv").touch()
    (tmp_path / "d.csv").mkdir()
    return path


@pytest.mark.parametrize(
    ("name", "overwrite", "sentence"),
    [
        *((name, False, ENDING) for name in ("a.txt", "a.json", "a.jsonl.zst", "a.parquet.gz")),
        ("none/a.csv", False, "none/a.csv; {}/none must be a directory."),
        ("in.jsonl", False, INPUT),
        ("in.jsonl", True, INPUT),
        ("link.jsonl", True, INPUT),
        ("there.csv", False, "there.csv already exists; use --overwrite to replace it."),
        ("there.csv", True, None),
        ("begun.csv", False, None),  # the job rejects it if it belongs to another job
        ("d.csv", True, "d.csv is a directory; set --output to a file."),
    ],
)
def test_an_output(source: Path, name: str, sentence: str | None, *, overwrite: bool) -> None:
    path = source.parent / name
    if sentence is None:
        check_output(path, source, [source], overwrite=overwrite)
        return
    with pytest.raises(CommandError) as caught:
        check_output(path, source, [source], overwrite=overwrite)
    assert str(caught.value).endswith(sentence.replace("{}", str(source.parent)))


@pytest.mark.parametrize(
    ("source", "first", "sentence"),
    [
        ("", "part-0.jsonl", "The next run would read {} as input"),
        ("part-*.jsonl", "part-0.jsonl", "The next run would read {} as input"),
    ],
)
def test_an_output_that_harms_the_inputs(
    tmp_path: Path, source: str, first: str, sentence: str
) -> None:
    path = tmp_path / "part-9.jsonl"
    with pytest.raises(CommandError) as caught:
        check_output(path, tmp_path / source, [tmp_path / first], overwrite=True)
    assert str(caught.value).startswith(sentence.replace("{}", str(path)))
