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
LATER = "The next run would read {}/in-9.jsonl as input; choose another --output."
ONE = "in.jsonl"


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
    ("name", "overwrite", "read", "sentence"),
    [
        *(
            (name, False, ONE, ENDING)
            for name in ("a.txt", "a.json", "a.jsonl.zst", "a.parquet.gz")
        ),
        ("none/a.csv", False, ONE, "none/a.csv; {}/none must be a directory."),
        ("in.jsonl", False, ONE, INPUT),
        ("in.jsonl", True, ONE, INPUT),
        ("link.jsonl", True, ONE, INPUT),
        ("there.csv", False, ONE, "there.csv already exists; use --overwrite to replace it."),
        ("there.csv", True, ONE, None),
        ("begun.csv", False, ONE, None),  # the job rejects it if it belongs to another job
        ("d.csv", True, ONE, "d.csv is a directory; set --output to a file."),
        # an output that a later run would read
        *(("in-9.jsonl", True, read, LATER) for read in ("", "in*.jsonl")),
    ],
)
def test_an_output(
    source: Path, name: str, read: str, sentence: str | None, *, overwrite: bool
) -> None:
    path, folder = source.parent / name, source.parent
    if sentence is None:
        check_output(path, folder / read, [source], overwrite=overwrite)
        return
    with pytest.raises(CommandError) as caught:
        check_output(path, folder / read, [source], overwrite=overwrite)
    assert str(caught.value).endswith(sentence.replace("{}", str(folder)))
