"""The serving process: its settings, its listeners, its event loop, and its exit code."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import uvicorn
from fastapi import FastAPI

from service import __version__
from service.app import FillMaskApp, create_app
from service.errors import SettingsError, StartupError
from service.http.connection import Connection
from service.http.server import Server
from service.http.unsent_responses import UnsentResponses
from service.observability.logs import log_loop_error, start_logging
from service.registry.registry import ModelRegistry
from service.settings import Settings, read_settings

_log = logging.getLogger("service")

# longer than proxies keep theirs, mostly 60 s: who closes first may cut off a request on its way
KEEP_ALIVE_S = 75
_YOUNG_OBJECTS = 10_000  # between collections


def serve(arguments: Sequence[str], reload_asked: threading.Event) -> int:
    """Serve until a signal ends it.

    Args:
        arguments: flags of the command.
        reload_asked: set if SIGHUP came before the service could reload.

    Returns:
        The exit code: 0 after SIGTERM or SIGINT, 1 when the service fails, 2 when it cannot start.
    """
    try:
        settings = read_settings(arguments)
        start_logging(settings.log_level, settings.log_format)
        if settings.log_texts:
            _log.warning("log_texts is on: what callers send is written to the log")
        return _serve(settings, reload_asked)
    except StartupError as error:
        print(error, file=sys.stderr)
        return 2


def _serve(settings: Settings, reload_asked: threading.Event) -> int:
    app = create_app(settings)
    connection = partial(
        Connection,
        max_connections=settings.max_connections,
        statistics=app.state.statistics,
        throttle=app.state.throttle,
        unsent=UnsentResponses(),
        check_overload=_room(app, settings),
    )
    # uvicorn takes uvloop where it is installed; _run says what lifespan="off" is
    config = uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", connection),
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # neither the caller's address nor the scheme is used
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=settings.shutdown_grace_s,
    )
    # bound before the model is loaded, so that a port in use is told at once
    with contextlib.ExitStack() as closing:
        ports = [settings.port, *filter(None, [settings.metrics_port])]
        listeners = [closing.enter_context(_bind(settings.host, port)) for port in ports]
        runner = closing.enter_context(asyncio.Runner(loop_factory=config.get_loop_factory()))
        return runner.run(_run(config, app, settings.drain_delay_s, listeners, reload_asked))


def _room(app: FillMaskApp, settings: Settings) -> Callable[[str, int], int | None]:
    """Who says at the door whether there is room for a request.

    Pages of other origins could not read an answer without the headers of CORS, and all requests
    are to be logged where that is asked for: then it is for the application to say.
    """
    if settings.cors_origins or settings.access_log == "all":
        return lambda _path, _ahead: None
    return app.retry_after_s


async def _run(
    config: uvicorn.Config,
    app: FastAPI,
    drain_delay_s: int,
    listeners: list[socket.socket],
    reload_asked: threading.Event,
) -> int:
    def started(url: str) -> None:
        names = ", ".join(models.by_name)
        print(f"fillmask {__version__} serves {names} on {url}, docs on {url}/docs", flush=True)

    def reload() -> None:
        if health.not_ready_reason is None:  # a process that ends loads nothing more
            models.reload_soon()

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    health = app.state.health
    # The lifespan is ours to run: uvicorn would print a traceback for a bad bundle.
    async with app.router.lifespan_context(app):
        models: ModelRegistry = app.state.models
        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGHUP, reload)
            if reload_asked.is_set():
                reload()
        # What is there now stays: looking through it again and again would stall requests. Each of
        # those has hundreds of objects, so that by default every few of them bring a collection.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS)
        await Server(config, health, drain_delay_s, started).serve(sockets=listeners)
    return 1 if health.failed else 0


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
