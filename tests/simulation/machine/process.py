"""A process of the service: the real application and server loop, on a simulated machine.

What is simulated: the clock, threads, the runtime's computation, the disk with the bundles, the
listening socket, and the part of uvicorn that turns bytes into ASGI calls.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import uvicorn

from fillmask import app as app_module
from fillmask import serve
from fillmask.app import FillMaskApp, create_app
from fillmask.engine import batcher
from fillmask.errors import StartupError
from fillmask.middleware.transfer import MemoryBudget
from fillmask.models import time_limit
from fillmask.settings import Settings
from tests.simulation.clients.exchange import Exchange
from tests.simulation.machine.disk import Disk
from tests.simulation.machine.loop import VirtualLoop, in_order

_TICK_S = 0.1


class Process:
    """A process of the service, from its start to its exit code.

    Args:
        settings: settings of the process.
        budget_bytes: memory budget of bodies and responses.

    Attributes:
        app: the application, after its creation.
        budget: its memory budget.
        ready: event at the first connection that the process accepts, or at its end before.
        started: whether the process has ever accepted connections.
        accepting: whether the process accepts connections.
        exit_code: exit code, or None while the process runs.
    """

    def __init__(
        self, loop: VirtualLoop, disk: Disk, settings: Settings, budget_bytes: int
    ) -> None:
        self._loop = loop
        self._disk = disk
        self._settings = settings
        self._budget_bytes = budget_bytes
        self._requests: set[asyncio.Task[None]] = set()
        self.ready = asyncio.Event()
        self.started = self.accepting = False
        self.exit_code: int | None = None
        self.app: FillMaskApp
        self.budget: MemoryBudget

    async def run(self) -> None:
        """Run the process. It ends like a real one, with an exit code."""

        def budget(_: int, free_bytes: int) -> MemoryBudget:
            self.budget = MemoryBudget(self._budget_bytes, free_bytes)
            return self.budget

        with patch.object(app_module, "MemoryBudget", budget):
            self.app = create_app(self._settings)
        listener: Any = SimpleNamespace(
            listen=self._listen,
            getsockname=lambda: ("127.0.0.1", 8000),
        )
        config: Any = SimpleNamespace(backlog=1)
        with patch.object(uvicorn, "Server", lambda _: _Server(self, self._settings)):
            try:
                self.exit_code = await serve._run(
                    config, self.app, self._settings, listener, Event()
                )
            except StartupError:
                self.exit_code = 2
            finally:
                self.accepting = False
                self.ready.set()

    def _listen(self, _: int) -> None:
        self.started = self.accepting = True
        self.ready.set()

    def open(self, exchange: Exchange, on_end: Callable[[Exchange], None]) -> None:
        """Start a request, as a server does with a new connection."""
        task = self._loop.create_task(self._serve(exchange, on_end))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _serve(self, exchange: Exchange, on_end: Callable[[Exchange], None]) -> None:
        try:
            await self.app(exchange.scope(), exchange.receive, exchange.send)
        finally:
            on_end(exchange)

    def terminate(self) -> None:
        """Send SIGTERM to the process."""
        self._loop.signal_handlers[signal.SIGTERM]()

    def stop_accepting(self) -> None:
        """Refuse further connections."""
        self.accepting = False

    async def finish(self, grace_s: float) -> None:
        """Wait for the requests, and cancel those that take longer."""
        if self._requests:
            await asyncio.wait(in_order(self._requests), timeout=grace_s)
        for task in in_order(self._requests):
            task.cancel()


class _Server:
    """What `fillmask.serve` uses of uvicorn.Server."""

    def __init__(self, process: Process, settings: Settings) -> None:
        self._process = process
        self._grace_s = settings.shutdown_grace_s
        self.started = self.should_exit = False
        self.servers = [SimpleNamespace(close=process.stop_accepting)]
        self.server_state = SimpleNamespace(connections=())

    async def serve(self, sockets: object) -> None:
        self.started = True
        while not self.should_exit:
            await asyncio.sleep(_TICK_S)
        self._process.stop_accepting()
        await self._process.finish(self._grace_s)


async def _stop_listening(_: object, server: SimpleNamespace, __: float) -> None:
    server.close()


@contextmanager
def simulated_machine(loop: VirtualLoop, disk: Disk) -> Iterator[None]:
    """Replace the clock, the threads, the disk and what else belongs to the real process."""
    ignored = SimpleNamespace(collect=list, freeze=list, set_threshold=lambda _: None, enable=list)
    with ExitStack() as patches:
        replaced: tuple[tuple[ModuleType, str, Any], ...] = (
            (time, "monotonic", loop.time),
            (time, "perf_counter", loop.time),
            (time, "sleep", loop.greenlets.sleep),
            (signal, "signal", lambda *_: None),
            (batcher, "threading", loop.greenlets.threading),
            (time_limit, "threading", loop.greenlets.threading),
            (serve, "gc", ignored),
            (serve, "stop_listening", _stop_listening),
        )
        for module, name, replacement in replaced:
            patches.enter_context(patch.object(module, name, replacement))
        patches.enter_context(patch.object(serve, "print", lambda *_, **__: None, create=True))
        patches.enter_context(disk.in_place())
        logging.disable(logging.CRITICAL)
        patches.callback(logging.disable, logging.NOTSET)
        yield
