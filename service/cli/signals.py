"""SIGINT and SIGTERM: what runs may keep what is done, and ends within a second."""

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
_ENDED = 0  # where signals have their numbers, which begin at 1
GRACE_S = 1.0


class SignalError(Exception):
    """A signal has ended what ran.

    Attributes:
        number: the signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


def run_until_signal(main: Main) -> None:
    """Run on an event loop on a thread of its own.

    So this thread sees a signal at once, even while that one loads a model. What runs is cancelled
    then; after a second, or a second signal, it is not waited for any more, and the caller is to
    end the process without waiting for threads.

    Args:
        main: what runs.

    Raises:
        SignalError: a signal came.
        BaseException: whatever it raises.
    """
    with _watching() as (ours, theirs):
        thread = _Thread(main, theirs)
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
def _watching() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection; the number of each signal comes out of the first.

    A thread that waits otherwise may not hear of one that the system gives to another thread.
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
    """What a signal's number comes by is done already."""


class _Thread(threading.Thread):
    """Runs an event loop; sends _ENDED when what ran on it has ended."""

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
                runner.run(self._until_its_end())
        except BaseException as error:  # noqa: BLE001 - `finish` raises it
            self._error = error
        finally:
            self._tell()

    def cancel(self) -> None:
        """Tell what runs to end."""
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            self._cancel()

    def finish(self) -> None:
        """Wait until the loop has been cleared up; raise what was raised on it."""
        self.join()
        if self._error is not None:
            raise self._error

    async def _until_its_end(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            await self._main()
        finally:
            self._tell()  # before the loop waits for its threads

    def _tell(self) -> None:
        with contextlib.suppress(OSError):  # nobody has waited
            self._events.send(bytes([_ENDED]))
