"""Weights that stay mapped: notice when somebody writes into their file."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from service.bundles.discovery import FileState, file_state

LOOK_EVERY_S = 1.0


async def watch_weights(file: Path, seen: FileState | None, on_change: Callable[[], None]) -> None:
    """Wait until a file is written to or truncated, and call a function then.

    A file that is replaced by renaming does no harm: what is mapped is still the one before.

    Args:
        file: of the weights.
        seen: its state when it was verified.
        on_change: called once.
    """
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        now = await asyncio.to_thread(file_state, file)
        if now is None or seen is None or now.inode != seen.inode:
            continue
        if (now.size_bytes, now.modified_ns) != (seen.size_bytes, seen.modified_ns):
            on_change()
            return
