"""Outputs of files: errors of rows, jobs that continue, paths that are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fillmask.cli import files, work
from fillmask.cli.errors import CommandError
from fillmask.cli.files import check_output
from fillmask.cli.job import Job, answers_file
from fillmask.cli.pipeline import RowPipeline
from tests.service.cli.command_line import (
    Done,
    fillmask,
    numbered,
    random_texts,
    read_rows,
    write_rows,
)
from tests.service.tiny import Tiny

Fill = Callable[..., Done]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


@pytest.fixture
def fill(tiny: Tiny) -> Fill:
    """Function that runs the command on a file."""

    def run(source: Path, output: Path, *flags: object) -> Done:
        return fillmask("--input", source, "--output", output, "--bundle", tiny.path, *flags)

    return run


def stop(*_: object) -> NoReturn:
    """Raise the error of a broken disk."""
    raise OSError(5, "Input/output error")


def test_invalid_row_ends_the_command(fill: Fill, tmp_path: Path, output: Path) -> None:
    # The message has the file and the row number. With --on-error report the command continues.
    rows = numbered(random_texts(30))
    rows[17] = {"id": 17, "inputs": "a dog"}
    source = write_rows(tmp_path / "in.jsonl", rows)
    done = fill(source, output)
    assert (done.code, done.out) == (2, "")
    saved, error = done.err.splitlines()
    assert saved == (
        "17 of 30 rows are saved; run the command again to continue after them, or with --restart "
        "to start over."
    )
    assert error == (
        "in.jsonl, row 18: inputs has no mask; write [MASK] in place of a word. With --on-error "
        "report, the command goes on after invalid rows."
    )
    assert not output.exists()
    done = fill(source, output, "--on-error=report")
    assert (done.code, done.err) == (
        0,
        "Continuing after row 17 of in.jsonl.\nout.jsonl: 30 rows, 1 with an error.\n",
    )
    filled = read_rows(output)
    no_mask = "inputs has no mask; write [MASK] in place of a word."
    assert filled[17] == rows[17] | {"error": no_mask}
    assert all("fills" in row for row in filled[:17] + filled[18:])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_continuing_computes_nothing_twice(
    fill: Fill, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A job without remaining rows loads no model, and may have begun with --on-error report.
    rows = [*numbered(random_texts(5)), {"inputs": "a dog"}]
    source = write_rows(tmp_path / "in.jsonl", rows)
    with monkeypatch.context() as patch:
        patch.setattr(files, "_join_answers", stop)
        assert fill(source, output, "--on-error=report").code == 1
    monkeypatch.setattr(work, "load_model", stop)
    done = fill(source, output)
    assert done.code == 2
    assert "\nin.jsonl, row 6: inputs has no mask" in done.err
    assert fill(source, output, "--on-error=report").code == 0


def test_another_job_does_not_continue(fill: Fill, tmp_path: Path, output: Path) -> None:
    # With --restart the command discards the saved answers.
    rows = numbered([*random_texts(8), "a dog"])
    source = write_rows(tmp_path / "in.jsonl", rows)
    assert fill(source, output).code == 2  # and saves the rows before the invalid one
    rows[8]["inputs"] = "a [MASK]"
    write_rows(source, rows)
    done = fill(source, output)
    assert done.code == 2
    assert f"{answers_file(output)} belongs to another job, with another input. " in done.err
    assert not output.exists()
    assert fill(source, output, "--restart").code == 0


@pytest.mark.parametrize("failure", ["row", "target", "model", "existing output"])
def test_a_run_that_saves_no_row_leaves_nothing(
    fill: Fill, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    # The corrected command then starts as if it were the first one.
    source = tmp_path / "in.jsonl"
    write_rows(source, [{"inputs": "a dog" if failure == "row" else "a [MASK]"}])
    if failure == "model":
        monkeypatch.setattr(work, "load_model", stop)
    if failure == "existing output":
        answers_file(output).touch()  # of a killed process, which has saved nothing
        output.write_text("old")
    flags = ["--target=é", "--on-error=report"] if failure == "target" else []
    done = fill(source, output, *flags)
    assert done.code
    assert "saved" not in done.err
    assert not answers_file(output).exists()
    monkeypatch.undo()
    output.unlink(missing_ok=True)
    write_rows(source, [{"inputs": "the [MASK]"}])
    assert fill(source, output, "--top-k=1").code == 0


def test_existing_output_is_not_replaced(fill: Fill, tmp_path: Path, output: Path) -> None:
    # With --overwrite the old output stays until the new output is complete.
    source = write_rows(tmp_path / "in.jsonl", [{"inputs": "a dog"}])
    output.write_text("old")
    exists = f"{output} already exists; use --overwrite to replace it.\n"
    assert fill(source, output, "--on-error=report") == Done(2, "", exists)
    assert fill(source, output, "--overwrite").code == 2
    assert output.read_text() == "old"
    done = fill(source, output, "--on-error=report", "--overwrite")
    assert (done.code, done.err) == (  # the output is there, but has no result
        2,
        (
            "out.jsonl: 1 row, 1 with an error.\nin.jsonl: every row has an error, which the "
            "output tells; correct the rows or the options.\n"
        ),
    )
    assert len(read_rows(output)) == 1


@pytest.mark.parametrize("changed", ["input", "output"])
def test_a_file_that_changes_in_the_meantime(
    fill: Fill, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    # The command keeps its answers, so that a second command with --overwrite only joins them.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(3)))
    join = files._join_answers

    def change_and_join(*arguments: Any) -> Any:
        with (source if changed == "input" else output).open("a") as stream:
            stream.write("\n")
        return join(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(files, "_join_answers", change_and_join)
        done = fill(source, output)
    assert done.code == 2
    if changed == "input":
        assert done.err.endswith(
            f"{source} has changed since the start of the command; start again with --restart.\n"
        )
        assert not output.exists()
        return
    assert "already exists; use --overwrite" in done.err
    assert output.read_text() == "\n"
    monkeypatch.setattr(work, "load_model", stop)
    assert fill(source, output, "--overwrite").code == 0
    assert len(read_rows(output)) == 3


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_concatenated_shards_equal_the_whole(fill: Fill, tmp_path: Path, ending: str) -> None:
    # Each CSV shard has its own header, even without rows.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(4)))
    whole = tmp_path / f"whole.{ending}"
    fill(source, whole, "--top-k=2")
    parts = [tmp_path / f"part-{index}.{ending}" for index in range(5)]
    for index, part in enumerate(parts):
        assert fill(source, part, "--top-k=2", f"--shard={index}/5").code == 0
    if ending == "parquet":
        assert pa.concat_tables(map(pq.read_table, parts)).equals(pq.read_table(whole))
        return
    lines = [part.read_bytes().splitlines(keepends=True) for part in parts]
    headers = [part.pop(0) for part in lines] if ending == "csv" else []
    assert len(set(headers)) == (ending == "csv")
    assert b"".join([*headers[:1], *(line for part in lines for line in part)]) == (
        whole.read_bytes()
    )


def test_failures_that_a_retry_may_cure(
    fill: Fill, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A full disk and a broken model have another exit code than permanent errors.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(600)))

    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device", str(output))

    with monkeypatch.context() as patch:
        patch.setattr(Job, "write", full)
        assert fill(source, output) == Done(1, "", f"{output}: no space left on device.\n")
    answer, calls = RowPipeline._answer, 0

    async def fail(self: Any, row: Any, item: Any) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 590:
            raise MemoryError("no more")
        return await answer(self, row, item)

    with monkeypatch.context() as patch:
        patch.setattr(RowPipeline, "_answer", fail)
        with pytest.raises(MemoryError):
            fill(source, output)
    done = fill(source, output)
    assert done.err.startswith("Continuing after row 589 of in.jsonl.\n")
    assert [row["id"] for row in read_rows(output)] == list(range(600))


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
