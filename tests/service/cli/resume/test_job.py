"""Identity, directory and completion of jobs."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask.cli.commands import RowsCommand, Shard
from fillmask.cli.errors import CommandError, RetryError
from fillmask.cli.resume.job import Job, fingerprint, locked, parts_directory
from fillmask.tables.delimited import Dialect
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


def touch_part(output: Path) -> Path:
    """Create an empty part file and return its path."""
    part = parts_directory(output) / "000000000000-000000000001.jsonl"
    part.touch()
    return part


def begin(output: Path, *, restart: bool = False, **changes: Any) -> bool:
    with locked(output):
        return Job(output, DESCRIPTION | changes).begin(restart=restart)


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
    assert begin(output, field="text")
    assert begin(output)
    part = touch_part(output)
    assert begin(output)
    assert part.exists()
    with pytest.raises(CommandError) as caught:
        begin(output, **change)
    assert str(caught.value) == (
        f"{parts_directory(output)} belongs to another job, with {sentence}. Run "
        "that job's command to continue it, or use --restart to discard it."
    )
    assert begin(output, restart=True, **change)
    assert {path.name for path in part.parent.iterdir()} == {"job.json", "lock"}
    assert begin(output, **change)


@pytest.mark.parametrize("content", ["{", "[]", '{"job": 1, "joined": false}', '{"job": {}}'])
@pytest.mark.parametrize("restart", [False, True])
def test_description_of_the_user_is_an_error(output: Path, content: str, *, restart: bool) -> None:
    # Only a user can damage the description, because the job writes it atomically.
    begin(output)
    part = touch_part(output)
    (parts_directory(output) / "job.json").write_text(content)
    with pytest.raises(CommandError, match=r"job.json is not the description of a job; move the"):
        begin(output, restart=restart)
    assert part.exists()


@pytest.mark.parametrize("name", ["lock", "unfinished", "joined", "job.json.draft", "0" * 12])
@pytest.mark.parametrize("restart", [False, True])
def test_directory_of_the_user_is_rejected(output: Path, name: str, *, restart: bool) -> None:
    # The directory has no description of a job, so that even the names of a job are the user's.
    path = parts_directory(output) / (f"{name}-{name}.jsonl" if name.isdigit() else name)
    path.parent.mkdir()
    path.write_text("mine")
    with pytest.raises(CommandError, match=f'"{path.name}", which does not belong to a job; move'):
        begin(output, restart=restart)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_text() == "mine"
    path.unlink()
    path.mkdir()
    with pytest.raises(CommandError, match="move"):
        begin(output, restart=restart)


@pytest.mark.parametrize("draft", ["", "{\n", '{\n  "job": {\n    "vers'])
def test_job_killed_before_its_description_is_begun_again(output: Path, draft: str) -> None:
    directory = parts_directory(output)
    directory.mkdir()
    (directory / "lock").touch()
    (directory / "job.json.draft").write_text(draft)
    assert begin(output)


def test_publish(output: Path) -> None:
    # It is repeated if the process ended before the rename, or if the user moved the output.
    output.write_text("old")
    with locked(output):
        job = Job(output, DESCRIPTION)
        assert job.begin(restart=False)
        job.joined.write_text("new")
        description = json.loads((job.directory / "job.json").read_text())
        (job.directory / "job.json").write_text(json.dumps(description | {"joined": True}))
        assert job.begin(restart=False)
        job.publish()
        assert output.read_text() == "new"
        assert not job.begin(restart=False)
        output.unlink()
        assert job.begin(restart=False)
        (job.directory / "thesis.txt").touch()
        job.remove_directory()  # without files that are not the job's
    assert [path.name for path in job.directory.iterdir()] == ["thesis.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="files are locked otherwise there")
def test_two_processes_do_not_work_on_one_output(output: Path) -> None:
    # The second process ends immediately. The user can repeat the command later.
    with locked(output), pytest.raises(RetryError, match=r"Another process is writing out.jsonl"):
        begin(output)
    assert begin(output)
    output = output.with_name("b.jsonl")
    parts_directory(output).write_text("mine")
    with pytest.raises(CommandError, match="must be a directory"):
        begin(output)
