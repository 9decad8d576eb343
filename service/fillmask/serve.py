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
from collections.abc import Iterator, Sequence
from functools import partial

import uvicorn

from fillmask import __version__
from fillmask.api.metrics_page import create_metrics_app
from fillmask.app import FillMaskApp, create_app
from fillmask.bundles.cache import exported_bundle
from fillmask.errors import SHUTTING_DOWN, SettingsError, StartupError
from fillmask.listener import bound_socket, stop_listening
from fillmask.models.registry import ModelRegistry
from fillmask.observability.background_output import in_background, keep_native_code_from_waiting
from fillmask.observability.health import Health
from fillmask.observability.logs import log_loop_error, start_logging
from fillmask.settings import Settings, flag, read_settings

_log = logging.getLogger("fillmask")

# longer than the keep-alive timeout of most proxies, which is 60 s. A server that closes the
# connection before the proxy may cut off a request in transit.
KEEP_ALIVE_S = 75
# interval between two checks for the start, and time for requests on their way
_CHECK_EVERY_S, _LAST_REQUESTS_S = 0.05, 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# New connections beyond these wait a second for their next try (TCP). A longer queue delays all
# behind a client that connects at full speed, a shorter one cuts off bursts.
_BACKLOG = 512
_GC_THRESHOLD = 10_000  # new objects between two garbage collections
_server_config = partial(
    uvicorn.Config, http="h11", ws="none", log_config=None, access_log=False, server_header=False
)


def serve(arguments: Sequence[str], reload_requested: threading.Event) -> int:
    """Run the server until a signal or a failure stops it.

    Args:
        arguments: flags of the command.
        reload_requested: event that is set if a SIGHUP arrived before the service could reload.

    Returns:
        The exit code, which is 0 after SIGTERM or SIGINT, 1 if the service fails and 2 if the
        service cannot start.
    """
    sys.stdout, sys.stderr = in_background(sys.stdout), in_background(sys.stderr)
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
    # bound before the models are exported and loaded, so that the start fails immediately if a port
    # is in use
    with contextlib.ExitStack() as closing:
        listener = closing.enter_context(_bind(settings, "port"))
        metrics_listener = (
            closing.enter_context(_bind(settings, "metrics_port"))
            if settings.metrics_port
            else None
        )
        if settings.checkpoint:
            bundle = exported_bundle(settings.checkpoint)
            settings = settings.model_copy(update={"bundle": bundle})
        keep_native_code_from_waiting()  # after the export, which waits for its reader
        app = create_app(settings)
        if metrics_listener:
            closing.enter_context(_metrics_server(app, metrics_listener))
        config = _server_config(
            app,
            lifespan="off",  # _run enters the lifespan
            proxy_headers=False,  # the service does not use the client's address or the scheme
            backlog=_BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=settings.shutdown_grace_s,
        )
        # uvicorn uses uvloop if it is installed
        runner = closing.enter_context(asyncio.Runner(loop_factory=config.get_loop_factory()))
        return runner.run(_run(config, app, settings, listener, reload_requested))


@contextlib.contextmanager
def _metrics_server(app: FillMaskApp, listener: socket.socket) -> Iterator[None]:
    """Serve the metrics and the liveness on another thread within the `with` block."""
    metrics_app = create_metrics_app(app.state.metrics, app.state.health)
    config = _server_config(metrics_app, loop="asyncio", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="fillmask-metrics", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


async def _run(
    config: uvicorn.Config,
    app: FillMaskApp,
    settings: Settings,
    listener: socket.socket,
    reload_requested: threading.Event,
) -> int:
    server = uvicorn.Server(config)
    health: Health = app.state.health
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)

    def reload() -> None:
        if health.not_ready_reason is None:  # a stopping process loads no models
            models.start_reload()

    # entered here, because uvicorn prints a traceback for an invalid bundle
    async with app.router.lifespan_context(app):
        models: ModelRegistry = app.state.models
        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGHUP, reload)
            if reload_requested.is_set():
                reload()
        # The current objects live as long as the process, and scanning them in each garbage
        # collection delays requests. With the default threshold, every few requests start one.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        gc.enable()
        # fails if another process has begun to listen since `_bind`
        with _readable_errors(settings, "port"):
            listener.listen(config.backlog)
        names = ", ".join(models.by_served_name)
        message = f"fillmask {__version__} serves {names} on {_url(listener)}"
        app.state.metrics.connections.set_function(lambda: len(server.server_state.connections))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        stopping = asyncio.create_task(
            _stop(server, listener, health, settings.drain_delay_s, message)
        )
        try:
            await serving
        finally:
            stopping.cancel()
    return 1 if health.failed else 0


async def _stop(
    server: uvicorn.Server,
    listener: socket.socket,
    health: Health,
    drain_delay_s: float,
    message: str,
) -> None:
    """Print a message when the server has started, and stop it after a signal or a failure.

    After a signal, the service reports that it is not ready and still responds for the drain delay.
    Each response closes its connection. A second signal ends the process. After a failure there is
    no delay.
    """

    def stop() -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        health.stop(SHUTTING_DOWN)

    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(_CHECK_EVERY_S)
    if sys.platform != "win32":  # uvicorn's own handlers stop without a delay
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, stop)
    print(message, flush=True)
    await health.wait_until_stopping()
    if not health.failed:
        await asyncio.sleep(drain_delay_s)
        [accepting] = server.servers
        await stop_listening(listener, accepting, _LAST_REQUESTS_S)
        await asyncio.sleep(_LAST_REQUESTS_S)
    server.should_exit = True


def _bind(settings: Settings, name: str) -> socket.socket:
    with _readable_errors(settings, name):
        return bound_socket(settings.host, getattr(settings, name))


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    return f"{url}, docs on {url}/docs"


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
