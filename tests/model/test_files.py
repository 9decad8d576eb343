"""Texts in UTF-8 and atomic replacement of files."""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from safetensors import SafetensorError

from fillmask_model.files import atomic_replace, read_object, read_text, sha256_of


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"a": "\ufeff"}\r\n', encoding="utf-8-sig")
    assert read_text(path) == '{"a": "\ufeff"}\r\n'
    assert read_object(path) == {"a": "\ufeff"}


def test_a_pointer_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d\n")
    with pytest.raises(ValueError, match=r"vocab\.txt is a Git LFS pointer .* `git lfs pull`"):
        read_text(path)


@pytest.mark.parametrize(
    ("error", "free_bytes", "is_full"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 0, True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 2**30, True),
        (OSError("4480 requested and 1856 written"), 4096, True),  # of numpy
        (RuntimeError("[enforce fail at inline_container.cc:672]"), 0, True),  # of torch
        (SafetensorError("I/O error: No space left on device (os error 28)"), 4096, True),
        (RuntimeError("[enforce fail at inline_container.cc:672]"), 2**30, False),
        (OSError(errno.EACCES, "Permission denied"), 0, False),
        (KeyboardInterrupt(), 0, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_leaves_the_file_from_before(
    error: BaseException,
    free_bytes: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_full: bool,
) -> None:
    usage = SimpleNamespace(free=free_bytes)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    path = tmp_path / "file"
    path.write_text("before")

    def fail() -> None:
        with atomic_replace(path) as temporary:
            temporary.write_text("aft")
            raise error

    with pytest.raises(OSError if is_full else type(error)) as caught:
        fail()
    if is_full:
        sentence = "cannot be written, because its disk is full; free some space, or choose another"
        assert str(caught.value) == f"{path} {sentence} output"
    else:
        assert caught.value is error
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_file_is_replaced_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The order is fsync of the file, rename, fsync of the directory.
    path, seen = tmp_path / "file", []
    path.write_text("before")
    monkeypatch.setattr(
        "fillmask_model.files._sync", lambda what: seen.append((what.name, path.read_text()))
    )
    with atomic_replace(path) as temporary:
        temporary.write_text("after")
        assert path.read_text() == "before"
        assert re.fullmatch(r"file\.[0-9a-f]{8}\.tmp", temporary.name)
    assert seen == [(temporary.name, "before"), (tmp_path.name, "after")]
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_rename_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(IsADirectoryError), atomic_replace(path) as temporary:
        temporary.write_text("after")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_digest_follows_contents_and_their_parts(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("one")
    b.write_text("two")
    assert sha256_of([a, b]) != sha256_of([b, a]) != sha256_of([a])
