"""Return of free memory to the system and huge pages for new memory."""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fillmask.engine.linux import memory
from fillmask.engine.linux.memory import (
    HUGE_PAGE_BYTES,
    anonymous_mappings,
    move_to_huge_pages,
)

BYTES = 8 * HUGE_PAGE_BYTES


class RecordedLibrary:
    """C library whose madvise records its calls and rejects every second call."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int]] = []

        def madvise(start: int, length: int, advice: int) -> int:
            self.calls.append((start, length, advice))
            return -1 if len(self.calls) % 2 == 0 else 0

        self.madvise: Any = madvise


def test_only_new_memory_is_named_in_whole_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    # Bytes of rejected calls do not count.
    old = np.ones(BYTES, np.uint8)
    before = anonymous_mappings()
    with mmap.mmap(-1, BYTES, mmap.MAP_PRIVATE) as new:
        library = RecordedLibrary()
        monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)
        counted = move_to_huge_pages(before)
        assert all(
            start % HUGE_PAGE_BYTES == length % HUGE_PAGE_BYTES == 0
            for start, length, _ in library.calls
        )
        assert {advice for _, _, advice in library.calls} == {25}
        assert counted == sum(length for _, length, _ in library.calls[::2])
        address = np.frombuffer(new, np.uint8).ctypes.data
        assert covered(library, address) >= BYTES - 2 * HUGE_PAGE_BYTES
        assert covered(library, old.ctypes.data) <= 2 * HUGE_PAGE_BYTES


def covered(library: RecordedLibrary, first: int) -> int:
    """Return how many of BYTES bytes from an address the calls name."""
    return sum(
        max(0, min(start + length, first + BYTES) - max(start, first))
        for start, length, _ in library.calls
    )


@pytest.mark.parametrize(
    ("before", "now", "added"),
    [
        ([], [(2, 5)], [(2, 5)]),
        ([(2, 5)], [(2, 5)], []),
        ([(2, 5)], [(1, 7)], [(1, 2), (5, 7)]),
        ([(2, 3), (4, 5)], [(2, 9)], [(3, 4), (5, 9)]),
        ([(2, 9)], [(2, 4), (5, 7), (8, 12)], [(9, 12)]),
        ([(0, 1), (20, 30)], [(2, 4), (6, 25)], [(2, 4), (6, 20)]),
    ],
)
def test_added_parts_of_mappings(
    before: list[memory.Mapping], now: list[memory.Mapping], added: list[memory.Mapping]
) -> None:
    assert list(memory._added(before, now)) == added


def test_other_systems_than_linux_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Other systems have no /proc to read.
    def absent(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", absent)
    assert move_to_huge_pages(anonymous_mappings()) == 0


async def test_memory_is_returned_after_a_burst_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Small requests cause no return of memory. Each burst causes one return.
    taken, returned = 0, 0

    def count() -> None:
        nonlocal returned
        returned += 1

    monkeypatch.setattr(memory, "RETURN_EVERY_S", 0.01)
    monkeypatch.setattr(memory, "return_free_memory", count)
    counts = []
    task = asyncio.create_task(memory.return_after_bursts(lambda: taken))
    for more in (0, memory.BURST_BYTES - 1, 1, 0, 2 * memory.BURST_BYTES, 0):
        await asyncio.sleep(0.1)
        counts.append(returned)
        taken += more
    await asyncio.sleep(0.1)
    task.cancel()
    assert [*counts, returned] == [0, 0, 0, 1, 1, 2, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere files stay mapped")
@pytest.mark.parametrize("small", [True, False], ids=["copied", "too large for a copy"])
def test_unused_parts_of_a_file_take_no_memory(
    small: bool,  # noqa: FBT001 - pytest passes it
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not small:
        monkeypatch.setattr(memory, "MAX_COPIED_BYTES", 0)
    file = tmp_path / "weights.bin"
    page, pages = mmap.PAGESIZE, 64
    file.write_bytes(b"\x5a" * (page * pages))
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, mmap.MAP_PRIVATE) as whole:
        # the first part starts and ends inside a page, and the last one ends with the file
        parts = [(10, 5 * page), (20 * page, 8 * page), (60 * page, 4 * page)]
        assert memory.copy_mapped_file(file, parts) is small
        found = [int(whole[number * page + 100] == 0) for number in range(pages)]
    freed = [*range(1, 5), *range(20, 28), *range(60, 64)]
    assert found == [int(number in freed) for number in range(pages)]
