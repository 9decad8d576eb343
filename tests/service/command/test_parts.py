"""Parts: whole or not there, and a chain from the first row on."""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from service.command.errors import CommandError
from service.command.line_rows import JsonBlock
from service.command.parts import DRAFT, Parts


def answer(number: int) -> bytes:
    """A row's answer that shows which row it is of."""
    return b"[%d]" % number


def write(parts: Parts, numbers: Sequence[int]) -> None:
    """Take these rows."""
    parts.write(JsonBlock(numbers[0], [b"{}"] * len(numbers)), list(map(answer, numbers)))


def names(directory: Path) -> list[str]:
    """The files there."""
    return sorted(path.name for path in directory.iterdir())


def test_parts_end_after_so_many_rows(tmp_path: Path) -> None:
    """Or when the job does; a new process finds them and what comes next."""
    parts = Parts(tmp_path, 100, rows=5, seconds=1e9)
    for first in range(100, 112, 3):
        write(parts, range(first, first + 3))
    parts.commit()
    parts.commit()
    assert names(tmp_path) == [
        "000000000100-000000000106.jsonl",
        "000000000106-000000000112.jsonl",
    ]
    for again in (parts, Parts(tmp_path, 100)):
        assert again.next_row == 112
        assert list(again.answers()) == [answer(n) for n in range(100, 112)]


def test_parts_end_after_some_time(tmp_path: Path) -> None:
    """So a kill costs little when rows take long."""
    parts = Parts(tmp_path, 0, rows=1000, seconds=0.0)
    write(parts, [0])
    write(parts, [1])
    assert names(tmp_path) == [
        "000000000000-000000000001.jsonl",
        "000000000001-000000000002.jsonl",
    ]


def test_what_was_not_ended_is_not_there(tmp_path: Path) -> None:
    """A process that is killed leaves a draft, and it is thrown away."""
    parts = Parts(tmp_path, 0, rows=2, seconds=1e9)
    write(parts, [0, 1])
    write(parts, [2])
    assert parts._stream is not None
    parts._stream.close()
    assert DRAFT in names(tmp_path)
    again = Parts(tmp_path, 0)
    assert again.next_row == 2
    assert DRAFT not in names(tmp_path)


def test_a_gap_ends_the_chain(tmp_path: Path) -> None:
    """What lies behind it is computed again; other files are left alone."""
    parts = Parts(tmp_path, 0, rows=1, seconds=1e9)
    for number in range(4):
        write(parts, [number])
    (tmp_path / "000000000001-000000000002.jsonl").unlink()
    (tmp_path / "job.json").touch()
    again = Parts(tmp_path, 0)
    assert again.next_row == 1
    assert names(tmp_path) == ["000000000000-000000000001.jsonl", "job.json"]


def test_a_part_that_is_not_whole_is_an_error(tmp_path: Path) -> None:
    """Somebody has changed it."""
    parts = Parts(tmp_path, 0, rows=2, seconds=1e9)
    write(parts, [0, 1])
    [path] = tmp_path.iterdir()
    path.write_bytes(b"[0]\n")
    with pytest.raises(CommandError, match="has 1 lines, and not 2; start anew with --restart"):
        list(parts.answers())


def test_a_part_that_cannot_be_written_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves nothing that looks whole, even if there is room again at the end."""
    parts = Parts(tmp_path, 0, rows=2, seconds=1e9)
    write(parts, [0, 1])
    write(parts, [2])

    def full(_descriptor: int) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write(parts, [3])
    parts.commit()
    assert Parts(tmp_path, 0).next_row == 2


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Nor does what is written after it."""
    parts = Parts(tmp_path, 0, rows=10, seconds=1e9)
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
    assert Parts(tmp_path, 0).next_row == 0
