"""Event loop on virtual time, in which a seed decides when everything happens.

Between two iterations the clock moves to the next timer, and past it by a drawn CPU time. This is
what makes two events fall into one iteration. Callbacks keep asyncio's order, first in, first out.
"""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from itertools import count
from random import Random
from typing import Any

from tests.simulation.machine.threads import Greenlets
from tests.simulation.trace import ViolationError

# share of the iterations that take long, and the CPU seconds of all others and of these
_LONG_SHARE, _SHORT_S, _LONG_S = 0.02, 0.000_2, 0.02
_EXECUTOR_THREADS = 2


class _VirtualSelector(selectors.BaseSelector):
    """Selector whose `select` moves the clock instead of waiting for files."""

    def __init__(self, wait: Callable[[float | None], None]) -> None:
        self._wait = wait
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._keys[fileobj] = selectors.SelectorKey(fileobj, -1, events, data)
        return self._keys[fileobj]

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._wait(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class _NumberedTask(asyncio.Task[Any]):
    """Task whose place in a set does not depend on its address."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **keywords: Any) -> None:
        self._number = number
        super().__init__(coroutine, **keywords)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop on virtual time with one real thread.

    Args:
        random: source of the CPU times.
        start_s: time of the clock at the start, in seconds.

    Attributes:
        now_s: virtual time in seconds.
        frozen_s: total seconds of all freezes so far.
        greenlets: the simulated threads.
        signal_handlers: functions that the service has added for signals.
        on_step: function that each iteration calls.
    """

    def __init__(self, random: Random, start_s: float = 1000.0) -> None:
        self.now_s = start_s
        self.frozen_s = 0.0
        self.greenlets = Greenlets(self, random)
        self.signal_handlers: dict[int, Callable[[], object]] = {}
        self.on_step: Callable[[], None] = self.do_nothing
        self._draw = random.random
        self._jobs: deque[Callable[[], None]] = deque()
        self._busy = 0
        self._violation: ViolationError | None = None
        super().__init__(_VirtualSelector(self._wait))
        numbers = count()
        self.set_task_factory(
            lambda loop, coroutine, **keywords: _NumberedTask(
                next(numbers), coroutine, loop=loop, **keywords
            )
        )

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self.now_s

    def freeze(self, seconds: float) -> None:
        """Stop the whole process for a time: the clock goes on, and nothing happens."""
        self.now_s += seconds
        self.frozen_s += seconds

    def violate(self, message: str) -> None:
        """End the simulation before its next iteration, wherever the caller runs."""
        self._violation = self._violation or ViolationError(message)

    def _wait(self, timeout_s: float | None) -> None:
        if self._violation is not None:
            raise self._violation
        if timeout_s is None:
            raise ViolationError("The loop has nothing to wait for, so it waits for ever.")
        draw = self._draw()
        cpu_s = draw * _SHORT_S if draw > _LONG_SHARE else draw / _LONG_SHARE * _LONG_S
        self.now_s += timeout_s + cpu_s
        self.on_step()

    def call_soon_threadsafe(  # type: ignore[override] # any callback
        self, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        self.greenlets.pause_by_chance()
        return self.call_soon(callback, *args, context=context)

    def set_default_executor(self, executor: Any) -> None:
        """Ignore the executor, whose threads would run on real time."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """Run a function on one of two simulated threads."""
        future = self.create_future()

        def run() -> None:
            try:
                result = func(*args)
            except ViolationError:
                raise
            except BaseException as error:  # noqa: BLE001 - as a real executor
                outcome: Callable[[], object] = _setter(future.set_exception, error)
            else:
                outcome = _setter(future.set_result, result)
            self._busy -= 1
            self._start_jobs()
            self.call_soon_threadsafe(lambda: future.done() or outcome())

        self._jobs.append(run)
        self._start_jobs()
        return future

    def _start_jobs(self) -> None:
        while self._jobs and self._busy < _EXECUTOR_THREADS:
            self._busy += 1
            self.greenlets.start(self._jobs.popleft())

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:  # type: ignore[override]
        self.signal_handlers[sig] = lambda: callback(*args)

    def do_nothing(self) -> None:
        """Check nothing in an iteration."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Treat every error that nobody has handled as a violation."""
        error = context.get("exception")
        if isinstance(error, ViolationError):
            self._violation = self._violation or error
            return
        self.violate(f"Nobody handles an error: {context['message']} ({error!r}).")

    def run(self, main: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine, then cancel what is left, as asyncio.Runner does, and close the loop."""
        asyncio.set_event_loop(self)
        try:
            self.run_until_complete(main)
            left = in_order(asyncio.all_tasks(self))
            for task in left:
                task.cancel()
            self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        finally:
            asyncio.set_event_loop(None)
            self.close()


def _setter(function: Callable[[Any], object], argument: Any) -> Callable[[], object]:
    return lambda: function(argument)


def in_order(tasks: Iterable[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Return tasks in the order of their creation."""
    return sorted(tasks, key=hash)
