"""Control of the memory of a training or export process on Linux."""

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

# advice for Linux 5.4 and later to drop pages, which Linux reads again on access
_MADV_PAGEOUT = 21
_PAGE_OUT_INTERVAL_S = 0.05
_PAGE_OUT_BYTES = 64 << 20
# parameters of mallopt(3)
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_GROW_BYTES = 256 << 20
_KERNELS = 32


def release_memory(tensors: Iterable[Tensor] = ()) -> None:
    """Return freed memory and the pages of mapped tensors to Linux.

    PyTorch frees buffers of every size. The C library keeps the gaps between the buffers that are
    still in use. The function has no effect outside Linux.

    Args:
        tensors: tensors that the caller does not need soon. The values stay available. The function
            ignores tensors on devices other than the CPU.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for tensor in tensors:
        if tensor.device.type != "cpu":
            continue
        # only whole pages, because other data may share the first and the last page
        first = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        length = tensor.data_ptr() + tensor.nbytes - first
        if length >= mmap.PAGESIZE:
            # older kernels return an error, which is harmless
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(length), _MADV_PAGEOUT)
    if hasattr(libc, "malloc_trim"):  # the GNU C library
        libc.malloc_trim(0)


def keep_freed_memory() -> None:
    """Make the GNU C library keep freed memory for this process's next allocation.

    By default the library maps every large block again. Linux then zeroes each page. Zeroing took a
    quarter of the time of a training step on a CPU (docs/decisions/021).
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, -1)
        libc.mallopt(_M_TOP_PAD, _GROW_BYTES)


def limit_kernel_cache() -> None:
    """Limit oneDNN's kernel cache to 32 shapes instead of 1,024.

    The call must precede the first matrix product. A value of ONEDNN_PRIMITIVE_CACHE_CAPACITY in
    the environment takes precedence. Each training step has new shapes, because the number of
    masked positions is random. Kernels are small but seem to fragment the heap. The peak memory of
    the process over 130 steps was 5.9 GB with the default and 3.5 GB with the limit, at 2,790 and
    2,830 tokens/s (docs/decisions/021).
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_KERNELS))


@contextmanager
def page_out_files(*endings: str) -> Iterator[None]:
    """Page out mapped files within the `with` block when about 64 MB of them are in memory.

    Without paging out, a sequential read of a mapped weight file leaves the whole file in memory.
    The function has no effect outside Linux.

    Args:
        endings: suffixes of the paths of the files to page out.
    """
    done = threading.Event()

    def page_out() -> None:
        libc = ctypes.CDLL(None)
        few_bytes = 0
        while not done.wait(_PAGE_OUT_INTERVAL_S):
            # reading the pages again takes longer than most matrix products
            if _mapped_bytes() < few_bytes + _PAGE_OUT_BYTES:
                continue
            for first, end in _mappings(endings):
                # harmless if the range has a new mapping, because paging out keeps the values
                libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _MADV_PAGEOUT)
            few_bytes = _mapped_bytes()

    thread = threading.Thread(target=page_out, daemon=True)
    if sys.platform == "linux":
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def _mapped_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[2]) * mmap.PAGESIZE


def _mappings(endings: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if line.endswith(endings):
            first, end = line.split(maxsplit=1)[0].split("-")
            yield int(first, 16), int(end, 16)
