"""Part files, each of which is complete or absent.

Together the part files cover the rows from the first row without gaps.
"""

import errno
import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import OutputOptions
from fillmask.cli.formats.by_extension import make_writer, open_rows
from fillmask.cli.formats.durable_files import (
    create,
    name_in_errors,
    replace_durably,
    sync,
    write_json,
)
from fillmask.cli.formats.jsonl import JsonBlock
from fillmask.cli.resume.parts import UNFINISHED, PartFiles
from fillmask.cli.tasks.fill_mask import FillMaskTask
from fillmask.parameters.fill_mask import FillOptions
from tests.service.cli.command_line import dice
from tests.service.tiny import Tiny


def test_json_is_written_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The old content stays until the new content is complete.
    path = tmp_path / "a.json"
    write_json(path, {"é": 1})
    assert json.loads(path.read_text(encoding="utf-8")) == {"é": 1}

    def fail(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_json(path, {"é": 2})
    assert json.loads(path.read_text(encoding="utf-8")) == {"é": 1}


def test_replace_durably(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A failed fsync of the directory is no error.
    def refuse(_descriptor: int) -> NoReturn:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    replace_durably(tmp_path / "new", tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "new"


FILLS = b'[{"score":0.5,"token":7,"token_str":"a","sequence":"a b"}]'
TOO_LARGE = os.strerror(errno.EFBIG)


@contextmanager
def limited_files(size_bytes: int) -> Iterator[None]:
    """Let the system reject writes beyond a file size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size_bytes", [0, 20_000])
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_full_disk_error_names_the_output(tmp_path: Path, ending: str, size_bytes: int) -> None:
    # The write of the first byte or of a later byte fails.
    source, path = tmp_path / "rows.txt", tmp_path / f"out.{ending}"
    rng = dice()
    source.write_text("".join(f"{rng.getrandbits(600)}\n" for _ in range(1000)))
    rows = open_rows(source, "inputs")
    output = make_writer(
        path, rows, OutputOptions(FillMaskTask(), FillOptions(), report_errors=False)
    )

    def write_all() -> None:
        with output.open(path) as write:
            for block in rows.blocks():
                write(block, [FILLS] * len(block))

    with limited_files(size_bytes), pytest.raises(OSError, match=TOO_LARGE) as caught:
        write_all()
    assert caught.value.filename == str(path)


def test_full_disk_error_names_the_part(tmp_path: Path) -> None:
    # Writes to a part are buffered, so the error may come only at the commit.
    parts = PartFiles(tmp_path, 0)
    parts.write(JsonBlock(0, [b"{}"]), [b"[]"])
    with limited_files(0), pytest.raises(OSError, match=TOO_LARGE) as caught:
        parts.commit()
    assert caught.value.filename == str(tmp_path / UNFINISHED)


def test_full_disk_error_names_the_json_file(tmp_path: Path) -> None:
    # The error names the draft, which `write_json` renames to the JSON file.
    with limited_files(0), pytest.raises(OSError, match=TOO_LARGE) as caught:
        write_json(tmp_path / "a.json", {})
    assert caught.value.filename == str(tmp_path / "a.json.draft")


def test_fsync_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Some disks report that they are full only on fsync.
    def refuse(_descriptor: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    path = tmp_path / "a"
    with create(path) as stream, pytest.raises(OSError, match="No space") as caught:
        sync(stream, path)
    assert caught.value.filename == str(path)


def test_existing_file_name_of_an_error_is_kept() -> None:
    with pytest.raises(OSError, match="x") as caught, name_in_errors("mine"):
        raise OSError(errno.ENOSPC, "x", "its own")
    assert caught.value.filename == "its own"


FULL = Path("/dev/full")


@pytest.mark.processes
@pytest.mark.skipif(not FULL.exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize(
    "arguments", [["the [MASK]"], ["the [MASK]", "--json"], ["--input", "-", "--output", "-"]]
)
def test_full_disk_error_names_standard_output(tiny: Tiny, arguments: list[str]) -> None:
    # The exit code is 1, because the same command may succeed next time.
    command = [sys.executable, "-m", "fillmask.cli", "--bundle", str(tiny.path), *arguments]
    with FULL.open("wb") as full:
        done = subprocess.run(
            command,
            input=b'{"inputs": "a [MASK]"}\n',
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"standard output: no space left on device.\n")


def answer(number: int) -> bytes:
    """Return an answer with the number of its row."""
    return b"[%d]" % number


def write(parts: PartFiles, numbers: Sequence[int]) -> None:
    """Write rows with these numbers and their answers."""
    parts.write(JsonBlock(numbers[0], [b"{}"] * len(numbers)), list(map(answer, numbers)))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_parts_end_at_their_maximum_of_rows(tmp_path: Path) -> None:
    parts = PartFiles(tmp_path, 100, rows=5, seconds=1e9)
    for first in range(100, 112, 3):
        write(parts, range(first, first + 3))
    parts.commit()
    parts.commit()
    assert names(tmp_path) == [
        "000000000100-000000000106.jsonl",
        "000000000106-000000000112.jsonl",
    ]
    for again in (parts, PartFiles(tmp_path, 100)):
        assert again.next_row == 112
        assert list(again.answers()) == [answer(n) for n in range(100, 112)]


def test_parts_end_after_their_maximum_time(tmp_path: Path) -> None:
    parts = PartFiles(tmp_path, 0, rows=1000, seconds=0.0)
    write(parts, [0])
    write(parts, [1])
    assert names(tmp_path) == [
        "000000000000-000000000001.jsonl",
        "000000000001-000000000002.jsonl",
    ]


def test_unfinished_part_is_discarded(tmp_path: Path) -> None:
    # A killed process leaves an unfinished file.
    parts = PartFiles(tmp_path, 0, rows=2, seconds=1e9)
    write(parts, [0, 1])
    write(parts, [2])
    assert parts._stream is not None
    parts._stream.close()
    assert UNFINISHED in names(tmp_path)
    again = PartFiles(tmp_path, 0)
    assert again.next_row == 2
    assert UNFINISHED not in names(tmp_path)


def test_a_gap_ends_the_chain(tmp_path: Path) -> None:
    # The job computes the rows after the gap again.
    parts = PartFiles(tmp_path, 0, rows=1, seconds=1e9)
    for number in range(4):
        write(parts, [number])
    (tmp_path / "000000000001-000000000002.jsonl").unlink()
    (tmp_path / "job.json").touch()
    again = PartFiles(tmp_path, 0)
    assert again.next_row == 1
    assert names(tmp_path) == ["000000000000-000000000001.jsonl", "job.json"]


@pytest.mark.parametrize("content", [b"[0]\n", b"[0]\n[1"])
def test_modified_part_is_an_error(tmp_path: Path, content: bytes) -> None:
    parts = PartFiles(tmp_path, 0, rows=2, seconds=1e9)
    write(parts, [0, 1])
    [path] = tmp_path.iterdir()
    path.write_bytes(content)
    with pytest.raises(CommandError, match=r"must be 2 \(got 1\); start again with --restart"):
        list(parts.answers())


def test_failed_fsync_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A full disk leaves no complete part, even if space becomes free later.
    parts = PartFiles(tmp_path, 0, rows=2, seconds=1e9)
    write(parts, [0, 1])
    write(parts, [2])

    def full(_descriptor: int) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write(parts, [3])
    parts.commit()
    assert PartFiles(tmp_path, 0).next_row == 2


def test_failed_write_leaves_no_part(tmp_path: Path) -> None:
    parts = PartFiles(tmp_path, 0, rows=10, seconds=1e9)
    write(parts, [0])

    class Full(io.BytesIO):
        def writelines(self, _lines: object) -> NoReturn:
            raise OSError(28, "No space left on device")

    assert parts._stream is not None
    parts._stream.close()
    parts._stream = Full()
    with pytest.raises(OSError, match="No space"):
        write(parts, [1])
    parts.commit()
    assert PartFiles(tmp_path, 0).next_row == 0
