"""Part files, each of which is complete or absent, and the errors of a full disk.

What a crash leaves is in test_crash_properties.py.
"""

import errno
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.durable_files import (
    create,
    name_in_errors,
    replace_durably,
    sync,
    write_json,
)
from fillmask.cli.resume.parts import UNFINISHED, PartFiles
from tests.service.cli.command_line import block_of, dice
from tests.service.cli.formats.written import FILL, write

TOO_LARGE = os.strerror(errno.EFBIG)


def test_replace_durably(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A failed fsync of the directory is no error, but one of the file is, and names it.
    def refuse(_descriptor: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("old")
    with create(new) as stream, pytest.raises(OSError, match="No space") as caught:
        sync(stream, new)
    assert caught.value.filename == str(new)
    replace_durably(new, old)
    assert list(tmp_path.iterdir()) == [old]
    with pytest.raises(OSError, match="x") as caught, name_in_errors("mine"):
        raise OSError(errno.ENOSPC, "x", "its own")
    assert caught.value.filename == "its own"


@contextmanager
def limited_files(size_bytes: int) -> Iterator[None]:
    """Let the system reject writes beyond a file size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_part(path: Path) -> None:
    parts = PartFiles(path.parent, 0)
    parts.write(block_of(0, 1), [b"[]"])  # buffered, so that the error may come at the commit
    parts.commit()


def write_output(path: Path) -> None:
    source = path.with_name("rows.txt")
    write(source, path.suffix[1:], [[FILL]] * 1000)


@pytest.mark.parametrize(
    ("name", "write_to", "size_bytes"),
    [
        ("out.jsonl", write_output, 20_000),
        ("out.csv", write_output, 0),
        ("out.parquet", write_output, 20_000),
        (UNFINISHED, write_part, 0),
        ("a.json.draft", lambda path: write_json(path.with_suffix(""), {}), 0),
    ],
)
def test_full_disk_error_names_the_file(
    tmp_path: Path, name: str, write_to: Callable[[Path], None], size_bytes: int
) -> None:
    rng = dice()
    texts = "".join(f"{rng.getrandbits(600)}\n" for _ in range(1000))
    (tmp_path / "rows.txt").write_text(texts)
    with limited_files(size_bytes), pytest.raises(OSError, match=TOO_LARGE) as caught:
        write_to(tmp_path / name)
    assert caught.value.filename == str(tmp_path / name)


def save(parts: PartFiles, numbers: Sequence[int]) -> None:
    """Write rows with these numbers as their answers."""
    parts.write(block_of(numbers[0], len(numbers)), [b"[%d]" % number for number in numbers])


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_parts_end_at_their_maximum_of_rows_or_time(tmp_path: Path) -> None:
    parts = PartFiles(tmp_path, 100, rows=5, seconds=1e9)
    for first in range(100, 112, 3):
        save(parts, range(first, first + 3))
    parts.commit()
    assert names(tmp_path) == [
        "000000000100-000000000106.jsonl",
        "000000000106-000000000112.jsonl",
    ]
    again = PartFiles(tmp_path, 100, rows=1000, seconds=0.0)
    assert again.next_row == parts.next_row == 112
    save(again, [112])
    assert names(tmp_path)[2:] == ["000000000112-000000000113.jsonl"]
    assert list(again.answers()) == [b"[%d]" % number for number in range(100, 113)]


def test_a_gap_ends_the_chain(tmp_path: Path) -> None:
    # The job computes the rows after the gap again, and those of an unfinished part.
    parts = PartFiles(tmp_path, 0, rows=1, seconds=1e9)
    for number in range(4):
        save(parts, [number])
    (tmp_path / "000000000001-000000000002.jsonl").unlink()
    for name in ("job.json", UNFINISHED):
        (tmp_path / name).touch()
    assert PartFiles(tmp_path, 0).next_row == 1
    assert names(tmp_path) == ["000000000000-000000000001.jsonl", "job.json"]


def test_modified_part_is_an_error(tmp_path: Path) -> None:
    parts = PartFiles(tmp_path, 0, rows=2, seconds=1e9)
    save(parts, [0, 1])
    [path] = tmp_path.iterdir()
    path.write_bytes(b"[0]\n[1")
    with pytest.raises(CommandError) as caught:
        list(parts.answers())
    assert str(caught.value) == (
        f"The number of lines in {path} must be 2 (got 1); start again with --restart."
    )


def test_failed_write_leaves_no_part(tmp_path: Path) -> None:
    # The content of the file is unknown, even if space becomes free later.
    parts = PartFiles(tmp_path, 0)
    save(parts, [0])
    with limited_files(0), pytest.raises(OSError, match=TOO_LARGE):
        parts.write(block_of(1, 1), [b"x" * 100_000])
    parts.commit()
    assert PartFiles(tmp_path, 0).next_row == 0
