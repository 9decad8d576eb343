"""Helper threads, which let a run use the CPUs that have no run of their own."""

import threading
import time
import weakref
from collections.abc import Callable

# function that makes a pool thread call another function as soon as a pool thread is free
CallOnPoolThread = Callable[[Callable[..., None]], None]

RECENT_S = 0.1
_CLOSE_TIMEOUT_S = 5
_PAUSE_S = 0.01


class HelperThreads:
    """Pool threads of an inference session that help the calling threads with their runs.

    With two threads instead of one, a single text takes 55 to 75 % of the time. Under load, the
    throughput is higher if each run stays on its calling thread (docs/decisions/006).

    onnxruntime cannot change the number of threads between runs, so this class keeps pool threads
    busy with a function that waits. Each new run leaves one helper for each CPU that has had no run
    of its own for RECENT_S, in all sessions of the process.

    Args:
        count: number of pool threads.
    """

    def __init__(self, call_on_pool_thread: CallOnPoolThread, count: int) -> None:
        self._call_on_pool_thread = call_on_pool_thread
        self._count = count
        self._busy = 0  # number of pool threads that wait or have to wait
        self._gate = _Gate()
        # also at the exit of the interpreter, which would otherwise wait for the pool threads
        self._close = weakref.finalize(self, self._gate.close)

    def start_run(self) -> int:
        """Count a new run and return the number of threads that it may use, at least 1."""
        with _ACTIVE.lock:
            busy = min(_ACTIVE.start() - 1, self._count)
            if busy < self._busy:
                self._gate.release(self._busy - busy)
            for _ in range(busy - self._busy):
                self._gate.expect()
                self._call_on_pool_thread(self._gate.wait)
            self._busy = busy
        return 1 + self._count - busy

    def end_run(self) -> None:
        with _ACTIVE.lock:
            _ACTIVE.runs -= 1

    def close(self) -> None:
        """Free all pool threads. No run may be in progress, and no run may follow."""
        self._close()


class _ActiveRuns:
    """Number of runs in progress, over all sessions of the process. Changes need the lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.runs = 0
        self._most, self._most_until_s = 0, 0.0

    def start(self) -> int:
        """Count a new run and return the largest number of simultaneous runs in RECENT_S."""
        self.runs += 1
        now_s = time.monotonic()
        if self.runs >= self._most or now_s > self._most_until_s:
            self._most, self._most_until_s = self.runs, now_s + RECENT_S
        return self._most


_ACTIVE = _ActiveRuns()


class _Gate:
    """Place where pool threads wait for their release."""

    def __init__(self) -> None:
        self._released = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._expected = 0  # number of calls of `wait` that have not returned
        self._used = False

    def expect(self) -> None:
        with self._lock:
            self._expected += 1
            self._used = True

    def wait(self, *_: object) -> None:
        """Wait for the release of one thread. onnxruntime passes the results of a run."""
        self._released.acquire()
        with self._lock:
            self._expected -= 1

    def release(self, threads: int) -> None:
        """Let threads return, first those that wait and then those that will wait."""
        self._released.release(threads)

    def close(self) -> None:
        if not self._used:
            return
        self._released.release(self._expected + 1)
        deadline_s = time.monotonic() + _CLOSE_TIMEOUT_S
        while self._expected and time.monotonic() < deadline_s:
            time.sleep(_PAUSE_S)
        # After `wait`, a pool thread needs Python's global lock for some microseconds. The
        # destructor of the session holds this lock until the pool threads have ended.
        time.sleep(_PAUSE_S)
