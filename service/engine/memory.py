"""Memory of the model: private weights, huge pages, and memory returned to the system."""

import asyncio
import ctypes
import mmap
import re
import sys
from collections.abc import Callable
from pathlib import Path

PAGE_BYTES = 2**21
_COLLAPSE = 25  # MADV_COLLAPSE, of Linux 6.1 and later
_ANONYMOUS = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) rw-p 00000000 00:00 0 *(?:\[heap\])?$", re.MULTILINE
)


def collapse_heap() -> int:
    """Ask Linux to move the memory allocated so far into huge pages.

    With the weights there, batches of three texts took 5.8 to 6.0 ms instead of 6.4 to 6.8, and 8
    HTTP clients got 760 and 724 requests/s instead of 693 and 679, at the same peak of memory.
    `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` gains half of that and must be set outside.

    A hint: nothing changes on other systems, on older kernels and without free huge pages.

    Returns:
        Bytes of address space for which it was done.
    """
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:  # not Linux
        return 0
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    collapsed = 0
    for mapping in _ANONYMOUS.finditer(maps):
        first, end = (int(address, 16) for address in mapping.groups())
        start = -(-first // PAGE_BYTES) * PAGE_BYTES
        length = end // PAGE_BYTES * PAGE_BYTES - start
        if length > 0 and madvise(start, length, _COLLAPSE) == 0:
            collapsed += length
    return collapsed


RETURN_EVERY_S = 5
# requests that took less leave little behind
BURST_BYTES = 32 * 2**20


def return_free_memory() -> None:
    """Ask glibc for it; by itself it keeps what lies between blocks that are still in use.

    A hint: other C libraries have no such function, and nothing changes.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


async def return_after_bursts(taken_bytes: Callable[[], int]) -> None:
    """Return free memory when requests have taken much of it, until this is cancelled.

    Bursts of different requests free blocks of different sizes. Kept, they add up: under a mix of
    attacks a process grew to 530 MB.

    Args:
        taken_bytes: the bytes that all requests so far have taken.
    """
    before = taken_bytes()
    while True:
        await asyncio.sleep(RETURN_EVERY_S)
        if taken_bytes() - before >= BURST_BYTES:
            before = taken_bytes()
            await asyncio.to_thread(return_free_memory)


_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S{3}p \S+ \S+ \S+ +(/.*)$", re.MULTILINE)
# A table of 85,000 tokens by 768 bytes. Of a larger one a service reads few rows, in pages that the
# system can drop; a copy would add 200 MB to an XLM-RoBERTa in int8.
MOST_BYTES = 2**26
_MAP_FAILED = ctypes.c_void_p(-1).value
_MREMAP_MAYMOVE, _MREMAP_FIXED = 1, 2


def make_private(file: Path) -> bool:
    """Replace each mapping of a file by a copy in memory, at the same address.

    Nothing may use the mappings meanwhile. Above MOST_BYTES all stay as they are, and on other
    systems than Linux.

    Returns:
        Whether nothing of the file is mapped any more.

    Raises:
        MemoryError: the system has not as much.
    """
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:  # not Linux
        return False
    path = str(file.resolve())
    mapped = [
        (int(mapping[1], 16), int(mapping[2], 16))
        for mapping in _MAPPING.finditer(maps)
        if mapping[3] == path
    ]
    if sum(end - start for start, end in mapped) > MOST_BYTES:
        return False
    libc = _libc()
    for start, end in mapped:
        _replace(libc, start, end - start)
    return True


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mremap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 2, ctypes.c_int]
    return libc


def _replace(libc: ctypes.CDLL, start: int, length: int) -> None:
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    copy = libc.mmap(None, length, protection, flags, -1, 0)
    if copy == _MAP_FAILED:
        raise MemoryError
    ctypes.memmove(copy, start, length)
    moved = _MREMAP_MAYMOVE | _MREMAP_FIXED
    if libc.mremap(copy, length, length, moved, ctypes.c_void_p(start)) == _MAP_FAILED:
        raise MemoryError
