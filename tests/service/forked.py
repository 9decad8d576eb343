"""Python processes forked from one that has imported the service.

The imports are nine tenths of the CPU time of a start.
"""

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Any

# On a request with code, this process forks one that runs the code. On a request with the id of a
# process that has ended, it returns the exit code.
_FORKER = """
import gc, json, os, socket, sys
import fillmask.app, fillmask.serve
control = socket.socket(fileno=int(sys.argv[1]))
gc.freeze()
while True:
    message, files, _, _ = socket.recv_fds(control, 1 << 20, 2)
    if not message:
        break
    request = json.loads(message)
    if "ended" in request:
        answer = os.waitstatus_to_exitcode(os.waitpid(request["ended"], 0)[1])
    else:
        answer = os.fork()
        if not answer:
            control.close()
            for number, file in enumerate(files, 1):
                os.dup2(file, number)
                os.close(file)
            os.environ.clear()
            os.environ.update(request["environment"])
            os.chdir(request["directory"])
            sys.argv[1:] = request["arguments"]
            exec(request["code"], {"__name__": "__main__"})
            sys.exit()
        for file in files:
            os.close(file)
    control.send(json.dumps(answer).encode())
"""


class ForkedProcess:
    """Process that a forker has started, with the methods of `subprocess.Popen`.

    Attributes:
        stdout: its standard output.
        returncode: exit code, or None before the process is known to have ended.
    """

    def __init__(self, pid: int, stdout: IO[str]) -> None:
        self.pid = pid
        self.stdout: IO[str] | None = stdout
        self.returncode: int | None = None
        self._end = os.pidfd_open(pid)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit code."""
        if self.returncode is None:
            if not select.select([self._end], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            self.returncode = int(_ask({"ended": self.pid}))
            os.close(self._end)
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@contextlib.contextmanager
def fork(code: str, arguments: list[str], errors: IO[str]) -> Iterator[ForkedProcess]:
    """Run Python code in a forked process, and kill it at the end.

    Args:
        errors: file for its standard error.
    """
    reader, writer = os.pipe()
    request = {
        "code": code,
        "arguments": arguments,
        "environment": dict(os.environ),
        "directory": os.getcwd(),  # noqa: PTH109 - JSON has no paths
    }
    pid = int(_ask(request, writer, errors.fileno()))
    os.close(writer)
    with os.fdopen(reader) as stdout:
        process = ForkedProcess(pid, stdout)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@functools.cache
def _forker() -> socket.socket:
    """Start the forker of this process and return the socket for its requests."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", _FORKER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # as in the forked processes, buffered in blocks
            env=os.environ | {"OMP_NUM_THREADS": "1"},  # only a process with one thread may fork
        )

    def end() -> None:
        ours.close()
        process.communicate()

    atexit.register(end)
    return ours


def _ask(request: dict[str, Any], *files: int) -> Any:
    control = _forker()
    socket.send_fds(control, [json.dumps(request).encode()], files)
    return json.loads(control.recv(100))
