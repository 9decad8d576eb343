"""The service in a thread of the tests, for examples that need its address."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from fillmask.app import create_app
from fillmask.settings import Settings


@contextlib.contextmanager
def serving(bundle: Path | None = None) -> Iterator[str]:
    """Serve a bundle, by default the built-in one, and yield the host and the port."""
    settings = Settings(threads=1) if bundle is None else Settings(threads=1, bundle=bundle)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(create_app(settings), log_config=None, access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the service did not start"
                time.sleep(0.005)
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
