"""Weights that nobody can change under the process: what it has mapped of their file is copied.

onnxruntime maps the weights. It copies most of them into a layout of its own, and reads the rest
through the mapping for as long as it runs: half of the built-in model's 24 MB, and of any model the
table of embeddings. Where somebody writes into that file, answers would be wrong; where somebody
truncates it, the kernel would end the process.
"""

import ctypes
import mmap
import re
from pathlib import Path

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
