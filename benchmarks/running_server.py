"""The service as a process of its own, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

ROOT = Path(__file__).parents[1]
SERVICE = (sys.executable, "-m", "service")
_URL = re.compile(r"http://\S+?:\d+")


class Served(NamedTuple):
    """A running service.

    Attributes:
        process: it.
        url: where it answers, without a slash at the end.
    """

    process: subprocess.Popen[str]
    url: str


@contextlib.contextmanager
def running_server(
    *flags: str,
    command: tuple[str, ...] = SERVICE,
    errors: IO[str] | None = None,
    **options: Any,
) -> Iterator[Served]:
    """Serve on a free port; the process is asked to end afterwards, and has ended.

    Args:
        flags: of `fillmask-serve`.
        command: what starts it.
        errors: takes the standard error output; this process's own by default.
        options: of `subprocess.Popen`.

    Raises:
        RuntimeError: it ended without saying where it serves.
    """
    arguments = [*command, "--port", "0", *flags]
    options = {"cwd": ROOT} | options
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=errors, text=True, **options
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            found = _URL.search(process.stdout.readline())
            if found is None:
                raise RuntimeError("the service did not start")
            yield Served(process, found[0])
        finally:
            process.terminate()
