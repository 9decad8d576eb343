"""Identity, directory and completion of jobs."""

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask.cli.commands import RowsCommand, Shard
from fillmask.cli.errors import CommandError, RetryError
from fillmask.cli.job import Job, answers_file, fingerprint, locked
from fillmask.tables.delimited import Dialect
from tests.service.cli.command_line import block_of
from tests.service.conftest import EditBundle
from tests.service.tiny import Tiny


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("", {}),
        ("input", {"content": "other"}),
        ("field", {"field": "y"}),
        ("parameters", {"parameters": {"top_k": 2}}),
        ("shard", {"shard": Shard(0, 2)}),
        ("task", {"task": "score"}),
        ("text_pair_column", {"text_pair_column": "z"}),
        ("delimiter", {"dialect": Dialect(";")}),
        ("quoting", {"dialect": Dialect(quoting="none")}),
        ("encoding", {"dialect": Dialect(encoding="cp1252")}),
        ("output_prefix", {"output_prefix": "p_"}),
    ],
)
def test_changes_that_make_another_job(
    tiny: Tiny, tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    # The name and the modification time of the input do not matter.
    prints = []
    for file, more in (("a.jsonl", {}), ("b.jsonl", change)):
        asked: dict[str, Any] = {"field": "x", "parameters": {"top_k": 1}, **more}
        path = tmp_path / file
        path.write_text(asked.pop("content", "same"))
        command = RowsCommand(input=path, output=tmp_path / "out.csv", **asked)
        prints.append(fingerprint([path], command, read_bundle(tiny.path)))
    assert [key for key in prints[0] if prints[0][key] != prints[1][key]] == [name][: bool(change)]


def test_another_model_is_another_job(tiny: Tiny, tmp_path: Path, edit_bundle: EditBundle) -> None:
    # A change to any file of the bundle makes another job.
    other = edit_bundle(lambda bundle: bundle.update(name="other"))
    command = RowsCommand(input=tmp_path, output=tmp_path, parameters={})
    one, two = (fingerprint([], command, read_bundle(path)) for path in (tiny.path, other))
    assert one["bundle"] != two["bundle"]


DESCRIPTION = {"version": "1", "input": "abc", "field": "inputs", "parameters": {"top_k": 2}}


def begin(output: Path, *, restart: bool = False, **changes: Any) -> Job:
    with locked(output):
        return Job(output, DESCRIPTION | changes, restart=restart)


def save_row(job: Job) -> None:
    job.write(block_of(0, 1), [b"[]"])
    job.save()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"input": "xyz"}, "another input"),
        (
            {"parameters": {}, "field": "x"},
            'field "inputs" instead of "x" and parameters "{\\"top_k\\": 2}" instead of "{}"',
        ),
    ],
)
def test_another_job_is_rejected(output: Path, change: dict[str, Any], sentence: str) -> None:
    # After an error before the first row, a corrected command may start another job.
    begin(output, field="text")
    save_row(begin(output))
    assert begin(output).rows == 1
    with pytest.raises(CommandError) as caught:
        begin(output, **change)
    assert str(caught.value) == (
        f"{answers_file(output)} belongs to another job, with {sentence}. Run "
        "that job's command to continue it, or use --restart to discard it."
    )
    assert begin(output, restart=True, **change).rows == 0
    assert begin(output, **change).rows == 0


@pytest.mark.parametrize("name", ["parts", "joined"])
@pytest.mark.parametrize("restart", [False, True])
def test_files_of_the_user_are_rejected(output: Path, name: str, *, restart: bool) -> None:
    path = output.with_name(f"{output.name}.{name}")
    path.write_text('{"job')  # what a process leaves that ended before it described its job
    if name == "parts":
        begin(output)
        path.write_text('{"mine": 1}')
    with pytest.raises(CommandError, match=f"{path.name} does not belong to a job; move it away"):
        begin(output, restart=restart)
    assert list(path.parent.iterdir()) == [path]
    path.unlink()
    path.mkdir()
    with pytest.raises(CommandError, match="move it away"):
        begin(output, restart=restart)


def test_saves_come_after_a_number_of_rows_or_seconds(output: Path) -> None:
    with locked(output):
        for rows, seconds, saved in ((5, 1e9, [0, 6, 6, 12]), (1000, 0.0, [3, 6, 9, 12])):
            job = Job(output, {}, restart=True, save_rows=rows, save_seconds=seconds)
            found = []
            for first in range(0, 12, 3):
                answers = [b"[%d]" % number for number in range(first, first + 3)]
                job.write(block_of(first, 3), answers)
                found.append(job.rows)
            assert found == saved
            assert list(Job(output, {}).answers()) == [b"[%d]" % number for number in range(12)]


def test_publish(output: Path) -> None:
    # It is repeated if the process ended before the rename, or if the user moved the output.
    output.write_text("old")
    save_row(begin(output))
    job = begin(output)
    job.joined.write_text("new")
    with mock.patch.object(Path, "replace", side_effect=KeyError), pytest.raises(KeyError):
        job.publish()
    job = begin(output)
    assert (job.rows, job.is_published) == (1, False)
    job.publish()
    assert output.read_text() == "new"
    assert begin(output).is_published
    output.unlink()
    job = begin(output)
    assert (job.rows, job.is_published) == (1, False)
    job.remove()
    assert not list(output.parent.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="files are locked otherwise there")
def test_two_processes_do_not_work_on_one_output(output: Path) -> None:
    # The second process ends immediately. The user can repeat the command later.
    with locked(output), pytest.raises(RetryError, match=r"Another process is writing out.jsonl"):
        begin(output)
    begin(output)
