"""Handling of SIGINT and SIGTERM, which give a command one second to save its results."""

import asyncio
import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

if sys.platform != "win32":
    import uvloop

Main = Callable[[], Coroutine[Any, Any, None]]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ENDED = 0  # number that means the end of the coroutine, because signal numbers start at 1
GRACE_S = 1.0


class SignalError(Exception):
    """Error for a signal that ended the command.

    Attributes:
        number: the signal's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


def run_until_signal(main: Main) -> None:
    """Run a coroutine on an event loop in another thread.

    The calling thread receives a signal immediately, even while the other thread loads a model. A
    signal cancels the coroutine. One second later, or at a second signal, this function stops
    waiting for the coroutine. The caller must then end the process without waiting for threads.

    Args:
        main: function that returns the coroutine.

    Raises:
        SignalError: the process received a signal.
        BaseException: the coroutine raised this exception.
    """
    with _signal_events() as (ours, theirs):
        thread = _EventLoopThread(main, theirs)
        thread.start()
        [event] = ours.recv(1)
        if event == _ENDED:
            thread.finish()
            return
        thread.cancel()
        ours.settimeout(GRACE_S)
        with contextlib.suppress(TimeoutError):
            ours.recv(1)
        raise SignalError(event)


@contextmanager
def _signal_events() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Open a socket pair, whose first socket receives the number of each signal.

    A socket wakes the waiting thread even if another thread receives the signal. In this case, a
    lock or a queue does not wake the waiting thread.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(0)
        handlers = {number: signal.signal(number, _do_nothing) for number in _SIGNALS}
        before = signal.set_wakeup_fd(theirs.fileno())
        try:
            yield ours, theirs
        finally:
            signal.set_wakeup_fd(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _do_nothing(_number: int, _frame: object) -> None:
    """Do nothing, because Python has already written the signal's number to the socket."""


class _EventLoopThread(threading.Thread):
    """Thread that runs a coroutine on an event loop and then sends _ENDED."""

    def __init__(self, main: Main, events: socket.socket) -> None:
        super().__init__(name="fillmask-event-loop", daemon=True)
        self._main = main
        self._events = events
        self._error: BaseException | None = None
        self._cancel: Callable[[], object] = bool

    def run(self) -> None:
        factory = None if sys.platform == "win32" else uvloop.new_event_loop
        try:
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(self._run_main())
        except BaseException as error:  # noqa: BLE001 - `finish` raises it
            self._error = error
        finally:
            self._notify_ended()

    def cancel(self) -> None:
        """Cancel the coroutine."""
        with contextlib.suppress(RuntimeError):  # the loop is already closed
            self._cancel()

    def finish(self) -> None:
        """Wait until the loop is closed and raise the error of the coroutine, if any."""
        self.join()
        if self._error is not None:
            raise self._error

    async def _run_main(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            await self._main()
        finally:
            self._notify_ended()  # before the loop waits for its threads

    def _notify_ended(self) -> None:
        with contextlib.suppress(OSError):  # the main thread no longer waits
            self._events.send(bytes([_ENDED]))
