"""Standard output and standard error that never wait for their readers."""

import atexit
import contextlib
import io
import logging
import os
import select
import stat
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from fillmask.observability.metrics import LOG_LINES_DROPPED

MAX_QUEUED_BYTES = 2**20
_PIPE_BYTES = 4096  # size of a write that other writers to a pipe cannot split
# pause after a write, because a thread that wakes for every line delays requests
_PAUSE_S = 0.005
_LAST_LINES_S = 1.0  # time for the last lines at the end of the process

_log = logging.getLogger(__name__)


class BackgroundFile(io.FileIO):
    """File that another thread writes. Lines beyond MAX_QUEUED_BYTES are dropped and counted."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd, "w", closefd=False)
        self._start()
        os.register_at_fork(after_in_child=self._start)
        atexit.register(self._finish)

    def write(self, lines: Any, /) -> int:
        with self._changed:
            if len(self._queued) + len(lines) > MAX_QUEUED_BYTES:
                self._drop(lines)
            else:
                self._queued += lines
                self._changed.notify()
        return len(lines)

    def _start(self) -> None:
        self._changed = threading.Condition()  # reentrant, because a finalizer may log
        self._queued, self._dropped = bytearray(), 0
        threading.Thread(target=self._run, name="fillmask-log", daemon=True).start()

    def _run(self) -> None:
        written = told = 0
        while True:
            with self._changed:
                del self._queued[:written]
                self._changed.wait_for(lambda: self._queued)
                end = self._queued.rfind(b"\n", 0, _PIPE_BYTES) + 1 or _PIPE_BYTES
                lines = bytes(self._queued[:end])
            try:
                written = super().write(lines) or 0
            except OSError:  # the reader is gone or the disk is full
                written = len(lines)
                with self._changed:
                    self._drop(lines)
                continue
            if not written:  # the file refuses to wait
                select.select((), (self,), ())
            elif (new := self._dropped - told) and len(self._queued) < MAX_QUEUED_BYTES / 2:
                told += new
                _log.error("lines lost, because nobody read the log in time: %d", new)
            if len(self._queued) == written:
                time.sleep(_PAUSE_S)

    def _drop(self, lines: bytes) -> None:
        count = lines.count(b"\n")
        self._dropped += count
        LOG_LINES_DROPPED.inc(count)

    def _finish(self) -> None:
        end_s = time.monotonic() + _LAST_LINES_S
        while self._queued and time.monotonic() < end_s:
            time.sleep(_PAUSE_S)


def in_background(stream: TextIO | None) -> TextIO:
    """Return a stream to the file of another stream, which is None if the file is closed."""
    if stream is None:
        return Path(os.devnull).open("w")
    if isinstance(stream.buffer, BackgroundFile):  # of an earlier start in this process
        return stream
    # names of models may have characters that the encoding lacks
    file = BackgroundFile(stream.fileno())
    return io.TextIOWrapper(file, stream.encoding, "backslashreplace", line_buffering=True)


def keep_native_code_from_waiting() -> None:
    """Let what onnxruntime and a crash print be lost if a pipe or terminal does not take it."""
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(os.fstat(2).st_mode):
            # a description of its own, because other processes share the given one
            own = os.open("/proc/self/fd/2", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            os.dup2(own, 2)
            os.close(own)
