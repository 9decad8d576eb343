"""fillmask-serve: read the settings, load the model, serve until told to stop."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from types import FrameType

import uvicorn
from fastapi import FastAPI

from service import __version__
from service.app import create_app
from service.errors import SettingsError, StartError
from service.settings import Settings, read_settings

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """Serve; 0 after SIGTERM or SIGINT, 2 when the service cannot start."""
    for number in _SIGNALS:
        # until the server listens there is nothing to finish
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        settings = read_settings(sys.argv[1:])
        _start_logging(settings)
        _serve(settings)
    except StartError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _serve(settings: Settings) -> None:
    app = create_app(settings)
    # uvicorn takes uvloop and httptools where they are installed; _run says what lifespan="off" is
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # neither the caller's address nor the scheme is used
        timeout_graceful_shutdown=settings.shutdown_grace_s,
    )
    # bound before the model is loaded, so that a port in use is told at once
    with (
        _bind(settings.host, settings.port) as listener,
        asyncio.Runner(loop_factory=config.get_loop_factory()) as runner,
    ):
        runner.run(_run(config, app, listener))


async def _run(config: uvicorn.Config, app: FastAPI, listener: socket.socket) -> None:
    # The lifespan is ours to run: uvicorn would print a traceback for a bad bundle.
    async with app.router.lifespan_context(app):
        await _Server(config, app).serve(sockets=[listener])


class _Server(uvicorn.Server):
    """uvicorn, with a process that outlives the signal and says when it starts and stops."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            name = self._app.state.served.info.name
            print(f"fillmask {__version__} serves {name} on {url}, docs on {url}/docs", flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again when all is done, and the process dies of it
        for number in _SIGNALS:
            signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._app.state.health.end("The service is shutting down.")
        super().handle_exit(sig, frame)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # asyncio turns Nagle's algorithm off only where the protocol is named; with it on, an
        # answer in two parts waits some 40 ms for the client's delayed acknowledgement
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        reason = (error.strerror or "unknown").lower()
        raise SettingsError(f"Cannot listen on {host} port {port}: {reason}.") from error
    return listener


def _start_logging(settings: Settings) -> None:
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # what uvicorn says of its own life is in our start line
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


if __name__ == "__main__":
    sys.exit(main())
