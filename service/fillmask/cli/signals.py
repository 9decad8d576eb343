"""Handling of SIGINT and SIGTERM, which give a command one second to save its results."""

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

if sys.platform != "win32":
    import uvloop

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
    handlers = {
        number: signal.signal(number, lambda one, _: received.append(one)) for number in _SIGNALS
    }
    try:
        thread = _EventLoopThread(main)
        thread.start()
        while not received and not thread.ended.wait(_CHECK_EVERY_S):
            pass
        if not received:
            thread.join()
            if thread.error is not None:
                raise thread.error
            return
        with contextlib.suppress(RuntimeError):  # the loop is already closed
            thread.cancel()
        passed_s = 0.0
        while passed_s < GRACE_S and len(received) < 2 and not thread.ended.wait(_CHECK_EVERY_S):
            passed_s += _CHECK_EVERY_S
        raise SignalError(received[0])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _EventLoopThread(threading.Thread):
    """Thread that runs a coroutine on an event loop.

    Attributes:
        ended: event that the coroutine has ended, before the loop waits for its threads.
        cancel: function that cancels the coroutine.
    """

    def __init__(self, main: Main) -> None:
        super().__init__(name="fillmask-event-loop", daemon=True)
        self._main = main
        self.ended = threading.Event()
        self.error: BaseException | None = None
        self.cancel: Callable[[], object] = bool

    def run(self) -> None:
        factory = None if sys.platform == "win32" else uvloop.new_event_loop
        try:
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(self._run_main())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            self.error = error
        finally:
            self.ended.set()

    async def _run_main(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            await self._main()
        finally:
            self.ended.set()
