"""What is asked of the kernel, and that nothing is lost by asking."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.huge_pages import PAGE_BYTES, collapse_heap

BYTES = 8 * PAGE_BYTES


class RecordedLibrary:
    """A C library whose madvise notes its calls and refuses every second one."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int]] = []

        def madvise(start: int, length: int, advice: int) -> int:
            self.calls.append((start, length, advice))
            return -1 if len(self.calls) % 2 == 0 else 0

        self.madvise: Any = madvise


def test_large_allocations_are_named_in_whole_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a large array but its ends; only what the kernel took is counted."""
    array = np.ones(BYTES, np.uint8)
    library = RecordedLibrary()
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)
    counted = collapse_heap()
    assert all(start % PAGE_BYTES == length % PAGE_BYTES == 0 for start, length, _ in library.calls)
    assert {advice for _, _, advice in library.calls} == {25}
    assert counted == sum(length for _, length, _ in library.calls[::2])
    first = array.ctypes.data
    covered = sum(
        max(0, min(start + length, first + BYTES) - max(start, first))
        for start, length, _ in library.calls
    )
    assert covered >= BYTES - 2 * PAGE_BYTES


def test_what_is_in_memory_stays() -> None:
    """The real call, whatever this kernel makes of it."""
    array = np.random.default_rng(0).integers(0, 255, BYTES, np.uint8)
    before = array.tobytes()
    assert collapse_heap() >= 0
    assert array.tobytes() == before


def test_elsewhere_than_on_linux_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """No /proc, no call."""

    def absent(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", absent)
    assert collapse_heap() == 0
