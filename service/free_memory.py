"""Give memory that was freed back to the system."""

import asyncio
import ctypes
import sys
from collections.abc import Callable

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
