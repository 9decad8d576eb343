"""The server process with its settings, sockets, event loop and exit code."""

import asyncio
import contextlib
import errno
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import cast

import uvicorn
from fastapi import FastAPI

from fillmask import __version__
from fillmask.app import FillMaskApp, create_app
from fillmask.errors import SettingsError, StartupError
from fillmask.flags import flag
from fillmask.http.connection import Connection
from fillmask.http.server import Server
from fillmask.http.unsent_responses import UnsentResponses
from fillmask.observability.logs import log_loop_error, start_logging
from fillmask.registry.registry import ModelRegistry
from fillmask.settings import Settings, read_settings

_log = logging.getLogger("fillmask")

# longer than the keep-alive timeout of most proxies, which is 60 s. A server that closes the
# connection before the proxy may cut off a request in transit.
KEEP_ALIVE_S = 75
# Limit on the unsent bytes in the kernel per accepted connection. Without the limit the kernel held
# up to 4 MB for a client that did not read. Pods are charged for these bytes.
_UNSENT_BYTES = 32 * 1024
_GC_THRESHOLD = 10_000  # new objects between two garbage collections


def serve(arguments: Sequence[str], reload_requested: threading.Event) -> int:
    """Run the server until a signal or a failure stops it.

    Args:
        arguments: flags of the command.
        reload_requested: event that is set if a SIGHUP arrived before the service could reload.

    Returns:
        The exit code, which is 0 after SIGTERM or SIGINT, 1 if the service fails and 2 if the
        service cannot start.
    """
    try:
        settings = read_settings(arguments)
        start_logging(settings.log_level, settings.log_format)
        if settings.log_texts:
            _log.warning("log_texts is true, so the log contains request bodies")
        return _serve(settings, reload_requested)
    except StartupError as error:
        print(error, file=sys.stderr)
        return 2


def _serve(settings: Settings, reload_requested: threading.Event) -> int:
    app = create_app(settings)
    connection = partial(
        Connection,
        max_connections=settings.max_connections,
        statistics=app.state.statistics,
        throttle=app.state.throttle,
        unsent=UnsentResponses(),
        check_overload=_overload_check(app, settings),
    )
    # uvicorn uses uvloop if it is installed
    config = uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", connection),
        lifespan="off",  # _run enters the lifespan
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the service does not use the client's address or the scheme
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=settings.shutdown_grace_s,
    )
    # bound before the models are loaded, so that the start fails immediately if a port is in use
    with contextlib.ExitStack() as closing:
        names = ["port", "metrics_port"] if settings.metrics_port else ["port"]
        listeners = {name: closing.enter_context(_bind(settings, name)) for name in names}
        runner = closing.enter_context(asyncio.Runner(loop_factory=config.get_loop_factory()))
        return runner.run(_run(config, app, settings, listeners, reload_requested))


def _overload_check(app: FillMaskApp, settings: Settings) -> Callable[[str, int], int | None]:
    """Return the overload check that connections call before the application.

    With CORS or a log of all requests, the check accepts every request and leaves the rejection to
    the application. Only the middleware of the application adds CORS headers, without which
    browsers cannot read a response. Only the middleware writes the access log.
    """
    if settings.cors_origins or settings.access_log == "all":
        return lambda _path, _ahead: None
    return app.retry_after_s


async def _run(
    config: uvicorn.Config,
    app: FastAPI,
    settings: Settings,
    listeners: dict[str, socket.socket],
    reload_requested: threading.Event,
) -> int:
    def on_start(url: str) -> None:
        names = ", ".join(models.by_served_name)
        print(f"fillmask {__version__} serves {names} on {url}, docs on {url}/docs", flush=True)

    def reload() -> None:
        if health.not_ready_reason is None:  # a stopping process loads no models
            models.start_reload()

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    health = app.state.health
    # entered here, because uvicorn prints a traceback for an invalid bundle
    async with app.router.lifespan_context(app):
        models: ModelRegistry = app.state.models
        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGHUP, reload)
            if reload_requested.is_set():
                reload()
        # The current objects live as long as the process. Scanning these objects in each garbage
        # collection delays requests. A request creates hundreds of objects, so that with the
        # default threshold every few requests start a collection.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        gc.enable()
        for name, listener in listeners.items():
            # fails if another process has begun to listen since `_bind`
            with _readable_errors(settings, name):
                listener.listen(config.backlog)
        server = Server(config, health, settings.drain_delay_s, on_start)
        await server.serve(sockets=list(listeners.values()))
    return 1 if health.failed else 0


def _bind(settings: Settings, name: str) -> socket.socket:
    """Return a socket with the address of the setting `port` or `metrics_port`."""
    address = settings.host, getattr(settings, name)
    with _readable_errors(settings, name), contextlib.ExitStack() as closing:
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        # asyncio disables Nagle's algorithm only if the socket names its protocol. With the
        # algorithm, a response in two parts waits about 40 ms for the client's delayed
        # acknowledgement.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        closing.callback(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        listener.bind(address)
        closing.pop_all()
    return listener


@contextlib.contextmanager
def _readable_errors(settings: Settings, name: str) -> Iterator[None]:
    """Convert the errors of a socket with the setting `port` or `metrics_port`."""
    host, port = settings.host, getattr(settings, name)
    try:
        yield
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            # 0 is a free port for `port`, but the main port for `metrics_port`
            free = ", or to 0 for any free port" if name == "port" else ""
            raise SettingsError(
                f"The service cannot listen on {host} port {port}, because another process listens "
                f"there; set {flag(name)} to another port{free}."
            ) from error
        reason = (error.strerror or "unknown").lower()
        raise SettingsError(
            f"The service cannot listen on {host} port {port} ({reason}); set another host or port."
        ) from error
