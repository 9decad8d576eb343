"""Signals, each of which cancels the command's coroutine.

After one second the command ends even if the coroutine does not.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fillmask.cli import signals
from fillmask.cli.signals import SignalError, run_until_signal


def send_after(started: threading.Event, *numbers: int) -> threading.Thread:
    """Start a thread that sends signals to this process after an event."""

    def send() -> None:
        assert started.wait(10)
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0.05)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_coroutine_ends_without_a_signal() -> None:
    # The coroutine runs on another thread.
    before = signal.getsignal(signal.SIGINT)
    threads: list[threading.Thread] = []

    async def main() -> None:
        threads.append(threading.current_thread())
        await asyncio.to_thread(time.sleep, 0)

    run_until_signal(main)
    assert threads[0] is not threading.current_thread()
    assert not threads[0].is_alive()
    assert signal.getsignal(signal.SIGINT) is before

    async def fail() -> None:
        raise ValueError("so")

    with pytest.raises(ValueError, match="so"):
        run_until_signal(fail)


def never_ends(
    started: threading.Event, go: threading.Event
) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return a coroutine function that blocks the event loop, as loading a model does."""

    async def main() -> None:
        started.set()
        go.wait(30)

    return main


@pytest.mark.parametrize("grace_s", [0.01, 1e6])
def test_unresponsive_coroutine_is_abandoned(
    monkeypatch: pytest.MonkeyPatch, grace_s: float
) -> None:
    # A second signal ends the wait at once.
    monkeypatch.setattr(signals, "GRACE_S", grace_s)
    started, go = threading.Event(), threading.Event()
    sender = send_after(started, *[signal.SIGINT] * (2 if grace_s > 1 else 1))
    with pytest.raises(SignalError):
        run_until_signal(never_ends(started, go))
    go.set()
    sender.join()
