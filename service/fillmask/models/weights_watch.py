"""Watch of the weights file of a served model, which other processes must not write to."""

import asyncio
import logging
from collections.abc import Callable

from fillmask.bundles.bundle import WEIGHTS_FILE, Bundle
from fillmask.bundles.discovery import FileState, file_state

_log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 1.0


async def watch_weights(
    bundle: Bundle, seen: FileState | None, on_failure: Callable[[str], None]
) -> None:
    """Fail when another process writes to the mapped weights or truncates them.

    Replacing the file by renaming is harmless, because the old file stays mapped.

    Args:
        seen: state of the file at its verification.
        on_failure: function to call once with a message after the change.
    """
    while True:
        await asyncio.sleep(CHECK_INTERVAL_S)
        now = await asyncio.to_thread(file_state, bundle.path / WEIGHTS_FILE)
        if now is None or seen is None or now.inode != seen.inode:
            continue
        if (now.size_bytes, now.modified_ns) != (seen.size_bytes, seen.modified_ns):
            _log.critical(
                "%s of the model %s has changed on disk, so responses may be wrong. The process "
                "stops. To replace a bundle, rename its directory, then the new one to its name.",
                WEIGHTS_FILE,
                bundle.name,
            )
            on_failure("The weights of a model have changed on disk; restart the service.")
            return
