"""Memory that is not needed for now: given back to Linux, or kept for what comes next."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor

# Linux 5.4: what a file holds is dropped and read again when it is wanted; other memory stays
_MADV_PAGEOUT = 21
_EVERY_S = 0.05
# parameters of mallopt, see its manual page
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_GROW_BYTES = 256 << 20
_KERNELS = 32


def give_back(tensors: Iterable[Tensor] = ()) -> None:
    """Give back what was freed, and pages of tensors that a file holds. Nothing but on Linux.

    PyTorch frees buffers of every size, and between those in use the C library keeps what it could
    return.

    Args:
        tensors: on the CPU, not needed for now; their values stay.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for tensor in tensors:
        if tensor.device.type != "cpu":
            continue
        # whole pages only: the others are shared with neighbours
        first = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        length = tensor.data_ptr() + tensor.nbytes - first
        if length >= mmap.PAGESIZE:
            # a kernel that does not know it says so, and nothing is lost
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(length), _MADV_PAGEOUT)
    if hasattr(libc, "malloc_trim"):  # the GNU C library
        libc.malloc_trim(0)


def keep_freed() -> None:
    """From now on the GNU C library keeps what is freed, for this process's next allocation.

    Of large blocks it would else ask Linux anew each time, which empties every page before it hands
    it out: a quarter of a training step on a CPU went into that (LOG.md, 2026-11-22).
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, -1)
        libc.mallopt(_M_TOP_PAD, _GROW_BYTES)


def keep_few_kernels() -> None:
    """From now on oneDNN keeps the kernels of the last 32 shapes, where it else keeps 1,024.

    Must come before the first product, and yields to a number that the environment sets. Each step
    of training brings new shapes, for chance decides how many positions are masked. Kernels are
    small, but seem to lie between large blocks of memory, which then cannot be joined: 5.9 GB after
    130 steps in place of 3.5, and no slower (LOG.md, 2026-11-22).
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_KERNELS))


@contextmanager
def paged_out(*endings: str) -> Iterator[None]:
    """Meanwhile, files that are mapped take hardly any memory; what is read of them comes and goes.

    Whoever maps a file of weights and runs through it has all of it in memory at the end. Nothing
    but on Linux.

    Args:
        endings: of the files' names.
    """
    done = threading.Event()

    def page_out() -> None:
        libc = ctypes.CDLL(None)
        while not done.wait(_EVERY_S):
            for first, end in _mappings(endings):
                # harmless to what may lie there by now: no value is lost, only its page
                libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _MADV_PAGEOUT)

    thread = threading.Thread(target=page_out, daemon=True)
    if sys.platform == "linux":
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def _mappings(endings: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Where the process has mapped parts of such files."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if line.endswith(endings):
            first, end = line.split(maxsplit=1)[0].split("-")
            yield int(first, 16), int(end, 16)
