"""Memory that is not needed for now, given back to Linux."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable

from torch import Tensor

# Linux 5.4: what a file holds is dropped and read again when it is wanted; other memory stays
_MADV_PAGEOUT = 21


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
