"""Jobs: whose directory it is, and what is done of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.bundles.bundle import read_bundle
from service.cli.errors import CommandError, RetryError
from service.cli.resume.job import Job, fingerprint, locked, parts_directory
from service.cli.row_options import WHOLE, Shard
from tests.service.conftest import EditBundle
from tests.service.tiny import Tiny


def test_the_same_content_is_the_same_job(tiny: Tiny, tmp_path: Path) -> None:
    """Whatever the file is called and however old it is."""
    bundle = read_bundle(tiny.path)
    prints = []
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("same")
        prints.append(fingerprint(tmp_path / name, "x", {"top_k": 1}, bundle, WHOLE))
    assert prints[0] == prints[1]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("input", {"content": "other"}),
        ("field", {"field": "y"}),
        ("parameters", {"parameters": {"top_k": 2}}),
        ("shard", {"shard": Shard(0, 2)}),
    ],
)
def test_what_makes_another_job(
    tiny: Tiny, tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    """One thing differs, and it is called by its name."""
    path = tmp_path / "a.jsonl"
    prints = []
    for more in ({}, change):
        asked: dict[str, Any] = {"field": "x", "parameters": {"top_k": 1}, "shard": WHOLE, **more}
        path.write_text(asked.pop("content", "same"))
        prints.append(fingerprint(path, bundle=read_bundle(tiny.path), **asked))
    assert [key for key in prints[0] if prints[0][key] != prints[1][key]] == [name]


def test_another_model_is_another_job(tiny: Tiny, tmp_path: Path, edit_bundle: EditBundle) -> None:
    """Also if only one of its files is another."""
    path = tmp_path / "a.jsonl"
    path.touch()
    other = edit_bundle(lambda bundle: bundle.update(name="other"))
    one, two = (
        fingerprint(path, "x", {}, read_bundle(bundle), WHOLE) for bundle in (tiny.path, other)
    )
    assert one["bundle"] != two["bundle"]


DESCRIPTION = {"version": "1", "input": "abc", "field": "inputs", "parameters": {"top_k": 2}}


def touch_part(output: Path) -> Path:
    """Something that is done."""
    part = parts_directory(output) / "000000000000-000000000001.jsonl"
    part.touch()
    return part


def begin(output: Path, *, restart: bool = False, **changes: Any) -> bool:
    """Begin a job or go on with it."""
    with locked(output):
        return Job(output, DESCRIPTION | changes).begin(restart=restart)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """What is to be written."""
    return tmp_path / "out.jsonl"


def test_the_same_job_goes_on(output: Path) -> None:
    """What is done of it is left alone."""
    assert begin(output)
    part = touch_part(output)
    assert begin(output)
    assert part.exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"input": "xyz"}, "another input"),
        ({"field": "text"}, 'field "inputs" and not "text"'),
        ({"version": "2"}, 'version "1" and not "2"'),
        (
            {"parameters": {}, "field": "x"},
            'field "inputs" and not "x" and parameters "{\\"top_k\\": 2}" and not "{}"',
        ),
    ],
)
def test_another_job_is_refused(output: Path, change: dict[str, Any], sentence: str) -> None:
    """With what differs and what one can do."""
    begin(output)
    touch_part(output)
    with pytest.raises(CommandError) as caught:
        begin(output, **change)
    assert str(caught.value) == (
        f"{parts_directory(output)} holds what is done of another job, with {sentence}. Its own "
        "command goes on with it; --restart throws it away."
    )
    assert begin(output, restart=True, **change)
    assert begin(output, **change)


def test_restart_throws_parts_away(output: Path) -> None:
    """Those alone."""
    begin(output)
    touch_part(output)
    begin(output, restart=True)
    names = {path.name for path in parts_directory(output).iterdir()}
    assert names == {"job.json", "lock"}


def test_a_job_of_which_nothing_is_done_is_no_job(output: Path) -> None:
    """A mistake that shows before the first row does not stand in the way of the right command."""
    begin(output)
    assert begin(output, field="text")
    touch_part(output)
    with pytest.raises(CommandError, match='field "text" and not "inputs"'):
        begin(output)


def test_a_directory_of_somebody_else_is_refused(output: Path) -> None:
    """And nothing in it is touched."""
    directory = parts_directory(output)
    directory.mkdir()
    (directory / "thesis.txt").touch()
    (directory / "unfinished").touch()
    with pytest.raises(CommandError, match=r'"thesis.txt", which is no part of a job'):
        begin(output)
    assert (directory / "unfinished").exists()


def test_a_description_that_is_broken_is_told(output: Path) -> None:
    """It is written whole, so somebody has changed it."""
    begin(output)
    (parts_directory(output) / "job.json").write_text("{")
    with pytest.raises(CommandError, match=r"job.json is not valid JSON; start anew"):
        begin(output)
    assert begin(output, restart=True)
    touch_part(output)
    (parts_directory(output) / "job.json").write_text("[]")
    with pytest.raises(CommandError, match="holds what is done of another job"):
        begin(output)


def test_delivery(output: Path) -> None:
    """The output gets its name, in place of an older one; then the directory goes."""
    output.write_text("old")
    with locked(output):
        job = Job(output, DESCRIPTION)
        assert job.begin(restart=False)
        job.joined.write_text("new")
        job.deliver()
        assert output.read_text() == "new"
        assert not job.begin(restart=False)
        job.end()
    assert not job.directory.exists()


def test_a_delivery_that_was_cut_off_is_done_again(output: Path) -> None:
    """Told that it will be joined, but without its name; or with its name and taken away."""
    with locked(output):
        job = Job(output, DESCRIPTION)
        job.begin(restart=False)
        job.joined.write_text("new")
        description = json.loads((job.directory / "job.json").read_text())
        (job.directory / "job.json").write_text(json.dumps(description | {"joined": True}))
        assert job.begin(restart=False)
        job.deliver()
        assert not job.begin(restart=False)
        output.unlink()
        assert job.begin(restart=False)


def test_a_file_of_somebody_else_stays_in_the_end(output: Path) -> None:
    """The directory is left to it."""
    with locked(output):
        job = Job(output, DESCRIPTION)
        job.begin(restart=False)
        (job.directory / "thesis.txt").touch()
        job.end()
    assert [path.name for path in job.directory.iterdir()] == ["thesis.txt"]


LOCK = """
import sys
from pathlib import Path
from typing import Any
from service.cli.resume.job import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files are locked otherwise there")
def test_two_processes_do_not_work_on_one_output(output: Path) -> None:
    """The second one ends at once, and may come back; a dead process holds nothing."""
    command = [sys.executable, "-c", LOCK, str(output)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(RetryError, match=r"Another process is at work on out.jsonl"):
            begin(output)
        other.kill()
        other.wait()
    assert begin(output)
