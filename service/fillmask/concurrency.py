"""asyncio helpers for concurrent coroutines and an event loop on a thread."""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_or_cancel(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in order, or the first error in order.

    The first failure cancels the other coroutines. A cancellation of the call has priority over
    errors. The call ends after all coroutines.
    """
    pending = list(coroutines)
    if len(pending) < 2:  # saves the creation of a task
        return [await coroutine for coroutine in pending]
    tasks = [asyncio.create_task(coroutine) for coroutine in pending]
    try:
        # A TaskGroup of Python 3.11 or 3.12 and asyncio.gather drop a cancellation that arrives
        # together with an error.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        return [task.result() for task in tasks if task.done()]
    except BaseException:
        for task in tasks:
            task.cancel()
        # raises nothing but a cancellation, which then replaces the error
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


# for rare work that takes too long for the loop, such as tokenizing a very long text
LONG_WORK_THREADS = 2


class BackgroundLoop:
    """An event loop on a daemon thread, for callers that have no event loop or another one.

    A process that has been forked from the loop's process has no such thread.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._executor = ThreadPoolExecutor(LONG_WORK_THREADS, thread_name_prefix=f"{name}-work")
        self._loop.set_default_executor(self._executor)
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._process = os.getpid()
        self._closed = False
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """Whether the calling thread is that of the loop, which can't wait for itself."""
        return threading.current_thread() is self._thread

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. An interrupt of the caller cancels it.

        Raises:
            RuntimeError: the loop is closed, belongs to another process or calls itself.
        """
        future = self._submit(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def run_async(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Do the same for a caller on another event loop."""
        return await asyncio.wrap_future(self._submit(coroutine))

    def close(self, last: Coroutine[Any, Any, object] | None = None) -> None:
        """Refuse new coroutines, run the last one, and stop the loop and its threads.

        A forked process has nothing to stop.
        """
        if os.getpid() != self._process:
            if last is not None:
                last.close()
            return
        self._closed = True
        if last is not None:
            asyncio.run_coroutine_threadsafe(last, self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._executor.shutdown()
        self._loop.close()

    def _serve(self) -> None:
        stopped = False
        while not stopped:
            # asyncio gives these to the caller of the coroutine, but ends the loop of all callers
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()
                stopped = True

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        problem = None
        if os.getpid() != self._process:
            problem = "The model was opened before this process forked; open it in each process."
        elif self._closed:
            problem = "The model is closed; open it again."
        elif self.is_current:
            problem = "The model's own thread can't wait for the model; call it on another thread."
        if problem is not None:
            coroutine.close()  # or Python warns that nobody awaits it
            raise RuntimeError(problem)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
