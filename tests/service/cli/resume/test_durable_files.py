"""Files on a disk that is full or refuses to flush them."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from fillmask.cli.durable_files import (
    create,
    name_in_errors,
    replace_durably,
    sync,
)
from fillmask.cli.job import Job, locked
from tests.service.cli.command_line import dice
from tests.service.cli.formats.written import FILL, write

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


def write_answers(path: Path) -> None:
    with locked(path.with_suffix("")):
        Job(path.with_suffix(""), {})


def write_output(path: Path) -> None:
    source = path.with_name("rows.txt")
    write(source, path.suffix[1:], [[FILL]] * 1000)


@pytest.mark.parametrize(
    ("name", "write_to", "size_bytes"),
    [
        ("out.jsonl", write_output, 20_000),
        ("out.csv", write_output, 0),
        ("out.parquet", write_output, 20_000),
        ("out.csv.parts", write_answers, 0),
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
