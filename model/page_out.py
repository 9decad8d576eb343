"""Weights that were read from a mapped file, and are not needed for now, out of memory."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable

from torch import Tensor

# Linux 5.4: what a file holds is dropped and read again when it is wanted; other memory stays
_MADV_PAGEOUT = 21


def page_out(tensors: Iterable[Tensor]) -> None:
    """Have Linux take the tensors' pages out of memory; their values stay. Nothing elsewhere.

    Args:
        tensors: on the CPU; only those that are views of a mapped file free memory.
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
