"""Handling of SIGINT and SIGTERM, which give a command one second to save its results."""

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Main = Callable[[], Coroutine[Any, Any, None]]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The waiting thread runs the handlers of signals at least this often. The system may deliver a
# signal to another thread, which does not wake the waiting one.
_CHECK_EVERY_S = 0.1
GRACE_S = 1.0


class SignalError(Exception):
    """Error for a signal that ended the command."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


def run_until_signal(main: Main) -> None:
    """Run a coroutine on an event loop in another thread.

    The calling thread receives a signal immediately, even while the other thread loads a model. A
    signal cancels the coroutine. One second later, or at a second signal, this function stops
    waiting for the coroutine. The caller must then end the process without waiting for threads.

    Raises:
        SignalError: the process received a signal.
        BaseException: the coroutine raised this exception.
    """
    received: list[int] = []
    ended = threading.Event()  # before the loop waits for its threads
    cancels: list[Callable[[], object]] = []

    async def run_main() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        cancels.append(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            await main()
        finally:
            ended.set()

    handlers = {
        number: signal.signal(number, lambda one, _: received.append(one)) for number in _SIGNALS
    }
    executor = ThreadPoolExecutor(1, "fillmask-event-loop")
    try:
        running = executor.submit(asyncio.run, run_main())
        while not received and not ended.wait(_CHECK_EVERY_S):
            pass
        if not received:
            return running.result()
        for cancel in cancels:
            with contextlib.suppress(RuntimeError):  # the loop is already closed
                cancel()
        deadline_s = time.monotonic() + GRACE_S
        while (
            time.monotonic() < deadline_s and len(received) < 2 and not ended.wait(_CHECK_EVERY_S)
        ):
            pass
        raise SignalError(received[0])
    finally:
        executor.shutdown(wait=not received)
        for number, handler in handlers.items():
            signal.signal(number, handler)
