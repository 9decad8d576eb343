"""The service as a separate process."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@asynccontextmanager
async def serving(
    *flags: str,
    port: int = 0,
    code: str | None = None,
    on_start: Callable[[int], object] | None = None,
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """Run the service, yield its process and port, and kill it at the end.

    Args:
        port: port of the service, 0 for a free port.
        code: Python code that starts the service, in place of `fillmask-serve`.
        on_start: callback that receives the process id at the start.
    """
    start = ["-c", code] if code is not None else ["-m", "fillmask"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *start, f"--port={port}", *flags, stdout=asyncio.subprocess.PIPE
    )
    try:
        if on_start is not None:
            on_start(process.pid)
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
        found = re.search(r"http://[^:]+:(\d+)", line)
        assert found is not None, line
        yield process, int(found[1])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
