"""Management of process memory, such as huge pages and the release of free memory."""

import asyncio
import ctypes
import mmap
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

HUGE_PAGE_BYTES = 2**21
_MADV_COLLAPSE = 25  # Linux 6.1 and later
_ANONYMOUS_MAPPING = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) rw-p 00000000 00:00 0 *(?:\[heap\])?$", re.MULTILINE
)


Mapping = tuple[int, int]  # first address and end


def anonymous_mappings() -> list[Mapping]:
    """Return the memory of this process that belongs to no file, or nothing outside Linux."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:  # not Linux
        return []
    found = _ANONYMOUS_MAPPING.finditer(maps)
    return [(int(mapping[1], 16), int(mapping[2], 16)) for mapping in found]


def move_to_huge_pages(before: Sequence[Mapping]) -> int:
    """Ask Linux to move the memory that was mapped since then into huge pages.

    With the weights in huge pages, eight HTTP clients together got 760 and 724 requests/s instead
    of 693 and 679, with the same peak memory. The function has no effect before Linux 6.1, on other
    systems and without free huge pages.

    Args:
        before: `anonymous_mappings` of an earlier moment. They may be the gigabytes of a program
            that uses the library.

    Returns:
        The moved bytes.
    """
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    moved = 0
    for first, end in _added(before, anonymous_mappings()):
        start = -(-first // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
        length = end // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES - start
        if length > 0 and madvise(start, length, _MADV_COLLAPSE) == 0:
            moved += length
    return moved


def _added(before: Sequence[Mapping], now: Sequence[Mapping]) -> Iterator[Mapping]:
    """Yield the parts of the mappings that were not mapped before. Both lists are in order."""
    place = 0
    for start, end in now:
        rest = start
        while place < len(before) and before[place][0] < end:
            known, known_end = before[place]
            if rest < known:
                yield rest, known
            rest = max(rest, known_end)
            if known_end > end:
                break  # the next mapping may overlap it, too
            place += 1
        if rest < end:
            yield rest, end


RETURN_EVERY_S = 5
# smaller bursts leave little free memory
BURST_BYTES = 32 * 2**20


def return_free_memory() -> None:
    """Ask glibc to return free memory between used blocks, which other C libraries ignore."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


async def return_after_bursts(taken_bytes: Callable[[], int]) -> None:
    """Return free memory to the system after each burst of requests until cancellation.

    Bursts leave free blocks of different sizes, which added up to 530 MB under a mix of attacks.

    Args:
        taken_bytes: function that returns the bytes that all requests so far have reserved.
    """
    before = taken_bytes()
    while True:
        await asyncio.sleep(RETURN_EVERY_S)
        if taken_bytes() - before >= BURST_BYTES:
            before = taken_bytes()
            await asyncio.to_thread(return_free_memory)


_FILE_MAPPING = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) \S{3}p ([0-9a-f]+) \S+ \S+ +(/.*)$", re.MULTILINE
)
# An embedding table with 768 bytes for each of 85,000 tokens. A service reads only a few rows of a
# larger one. The system can drop the others if the file is mapped, but not if they are a copy,
# which adds 200 MB to an XLM-RoBERTa model in int8.
MAX_COPIED_BYTES = 2**26
_MAP_FAILED = ctypes.c_void_p(-1).value
_MREMAP_MAYMOVE, _MREMAP_FIXED = 1, 2
_MAP_FIXED = 16


def copy_mapped_file(file: Path, unused: Sequence[tuple[int, int]] = ()) -> bool:
    """Replace each mapping of a file with a copy in memory, at the same address.

    No thread may read the mappings during the call. The function has no effect if the mappings
    together exceed MAX_COPIED_BYTES, or on systems other than Linux.

    Args:
        unused: offsets and sizes in bytes of parts that nobody reads. The function frees their
            pages instead of copying them, even of a larger file.

    Returns:
        True if the file is no longer mapped.

    Raises:
        MemoryError: the system has too little memory for the copies.
    """
    if sys.platform != "linux":
        return False
    libc = _libc()
    for start, end, at in _mappings(file) if unused else ():
        for offset, size_bytes in unused:
            # whole pages of the part, at their places in this mapping
            first = -(-max(offset, at) // mmap.PAGESIZE) * mmap.PAGESIZE
            last = min(offset + size_bytes, at + end - start) // mmap.PAGESIZE * mmap.PAGESIZE
            if first < last:
                _map_zeros(libc, start + first - at, last - first)
    mapped = _mappings(file)
    if sum(end - start for start, end, _ in mapped) > MAX_COPIED_BYTES:
        return False
    for start, end, _ in mapped:
        _replace_mapping(libc, start, end - start)
    return True


def _mappings(file: Path) -> list[tuple[int, int, int]]:
    """Return the address, the end and the place in the file of each mapping of a file."""
    maps = Path("/proc/self/maps").read_text()
    path = str(file.resolve())
    return [
        (int(mapping[1], 16), int(mapping[2], 16), int(mapping[3], 16))
        for mapping in _FILE_MAPPING.finditer(maps)
        if mapping[4] == path
    ]


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mremap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 2, ctypes.c_int]
    return libc


def _map_zeros(libc: ctypes.CDLL, start: int | None, length: int) -> int:
    """Map memory that takes no space before the first write, anywhere or at an address."""
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address: int = libc.mmap(start, length, protection, flags | (_MAP_FIXED if start else 0), -1, 0)
    if address == _MAP_FAILED:
        raise MemoryError
    return address


def _replace_mapping(libc: ctypes.CDLL, start: int, length: int) -> None:
    copy = _map_zeros(libc, None, length)
    ctypes.memmove(copy, start, length)
    moved = _MREMAP_MAYMOVE | _MREMAP_FIXED
    if libc.mremap(copy, length, length, moved, ctypes.c_void_p(start)) == _MAP_FAILED:
        raise MemoryError
