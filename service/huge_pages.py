"""Weights in pages of 2 MB: a batch of few texts is bound by how fast its weights can be read.

With pages of 4 KB a core that reads 22 MB of weights for each batch spends much of that time on
looking up where they are, and its prefetcher stops at the end of each (LOG.md, 2026-11-20).
"""

import ctypes
import re
from pathlib import Path

PAGE_BYTES = 2**21
_COLLAPSE = 25  # MADV_COLLAPSE, of Linux 6.1 and later
_ANONYMOUS = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) rw-p 00000000 00:00 0 *(?:\[heap\])?$", re.MULTILINE
)


def collapse_heap() -> int:
    """Ask Linux to lay what the process has allocated so far into huge pages.

    A hint: on other systems, on older kernels and where no huge page is left nothing changes.

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
