"""The service as a separate process, which does all its imports itself."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.service.server_process import SERVE, Process, start_process


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def serving(*flags: str, code: str = SERVE) -> Iterator[tuple[Process, int]]:
    """Run the service, yield its process and port, and kill it at the end."""
    with start_process(*flags, code=code, forks=False) as (process, url):
        yield process, int(url.rpartition(":")[2])
