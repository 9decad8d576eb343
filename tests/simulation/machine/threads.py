"""Threads of the simulation: greenlets that wait on virtual time.

A greenlet stops only where a thread can be preempted with an effect: before it takes a lock, after
it has released one, before it calls the event loop, and where it waits.
"""

from collections.abc import Callable
from random import Random
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from greenlet import getcurrent, greenlet

from tests.simulation.trace import ViolationError

if TYPE_CHECKING:  # the loop has its greenlets
    from tests.simulation.machine.loop import VirtualLoop

# share of the places at which a greenlet pauses, and the most seconds of a pause
_PAUSE_SHARE, _PAUSE_S = 0.05, 0.005
_WAKE_S = 0.000_2


class Greenlets:
    """Simulated threads of one event loop.

    Attributes:
        threading: replacement of the module `threading`.
    """

    def __init__(self, loop: "VirtualLoop", random: Random) -> None:
        self._loop = loop
        self._draw = random.random
        self._hub = getcurrent()
        self._threads: set[greenlet] = set()
        self.threading = SimpleNamespace(
            Thread=self._thread,
            Lock=lambda: Lock(self),
            Condition=lambda lock: _Condition(self, lock),
            Timer=lambda seconds, function: _Timer(self, loop, seconds, function),
        )

    def start(self, function: Callable[[], None]) -> None:
        """Run a function on a new greenlet, soon."""
        self.wake(greenlet(function, parent=self._hub))

    def wake(self, sleeper: greenlet) -> None:
        """Continue a greenlet after the time that a thread needs to wake up."""
        draw = self._draw()
        wake_s = draw * _WAKE_S if draw > _PAUSE_SHARE else draw / _PAUSE_SHARE * _PAUSE_S
        self._loop.call_later(wake_s, sleeper.switch)

    def block(self) -> greenlet:
        """Return the current greenlet, which must then call `switch_to_hub`."""
        current = getcurrent()
        if current is self._hub:
            self.violate("The event loop blocks on a thread or a condition.")
        return current

    def switch_to_hub(self) -> None:
        """Stop the current greenlet until something continues it."""
        self._hub.switch()

    def sleep(self, seconds: float) -> None:
        """Stop the current greenlet for a time. On the event loop, the clock moves instead."""
        current = getcurrent()
        if current is self._hub:
            self._loop.now_s += seconds
            return
        self._loop.call_later(seconds, current.switch)
        self._hub.switch()

    def pause_by_chance(self) -> None:
        """Preempt the current greenlet in some cases. The event loop goes on."""
        if getcurrent() is not self._hub:
            draw = self._draw()
            if draw < _PAUSE_SHARE:
                self.sleep(draw / _PAUSE_SHARE * _PAUSE_S)

    def run_thread(self, target: Callable[[], object]) -> None:
        """Run the function of a `Thread` on the current greenlet."""
        self._threads.add(getcurrent())
        target()

    def in_thread(self) -> bool:
        """Return whether a `Thread` runs, such as a worker, and not a function of an executor."""
        return getcurrent() in self._threads

    def violate(self, message: str) -> NoReturn:
        """End the simulation, also if the caller's callers handle the error."""
        self._loop.violate(message)
        raise ViolationError(message)

    def _thread(
        self, target: Callable[..., object], name: str = "", *, daemon: bool = False
    ) -> "_Thread":
        return _Thread(self, target)


class _Thread:
    def __init__(self, greenlets: Greenlets, target: Callable[..., object]) -> None:
        self._greenlets = greenlets
        self._target = target
        self._ended = False
        self._joining: list[greenlet] = []

    def start(self) -> None:
        self._greenlets.start(self._run)

    def join(self) -> None:
        while not self._ended:
            self._joining.append(self._greenlets.block())
            self._greenlets.switch_to_hub()

    def _run(self) -> None:
        self._greenlets.run_thread(self._target)
        self._ended = True
        for one in self._joining:
            self._greenlets.wake(one)


class Lock:
    """Lock that no greenlet keeps while it is stopped, so nobody ever waits for it."""

    def __init__(self, greenlets: Greenlets) -> None:
        self._greenlets = greenlets
        self.held = False

    def __enter__(self) -> None:
        self._greenlets.pause_by_chance()
        if self.held:
            self._greenlets.violate("A thread takes a lock that is held, so it waits for ever.")
        self.held = True

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.held = False
        self._greenlets.pause_by_chance()


class _Condition:
    def __init__(self, greenlets: Greenlets, lock: Lock) -> None:
        self._greenlets = greenlets
        self._lock = lock
        self._waiting: list[greenlet] = []

    def wait(self) -> None:
        self._waiting.append(self._greenlets.block())
        self._lock.held = False
        self._greenlets.switch_to_hub()
        self._lock.held = True

    def notify(self) -> None:
        if not self._lock.held:
            self._greenlets.violate("A thread notifies a condition without its lock.")
        if self._waiting:
            self._greenlets.wake(self._waiting.pop(0))


class _Timer:
    def __init__(
        self,
        greenlets: Greenlets,
        loop: "VirtualLoop",
        seconds: float,
        function: Callable[[], None],
    ) -> None:
        self.daemon = False
        self._greenlets = greenlets
        self._loop = loop
        self._seconds = seconds
        self._function = function
        self._handle: Any = None

    def start(self) -> None:
        self._handle = self._loop.call_later(self._seconds, self._greenlets.start, self._function)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
