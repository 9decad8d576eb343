"""Separate process of the service for tests and benchmarks."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

ROOT = Path(__file__).parents[1]
# the folders of this checkout from which Python imports its packages
SOURCE_ROOTS = [ROOT / name for name in ("service", "model", "export")]
SERVICE = (sys.executable, "-m", "fillmask")
_URL = re.compile(r"http://\S+?:\d+")


class Served(NamedTuple):
    """Running service.

    Attributes:
        url: base URL without a final slash.
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
    """Run the service on a free port until the end of the block.

    Args:
        flags: flags of `fillmask-serve`.
        command: command that starts the service.
        errors: file for the standard error output. None for the error output of this process.
        options: arguments of `subprocess.Popen`.

    Raises:
        RuntimeError: the service printed no URL.
    """
    arguments = [*command, "--port", "0", *flags]
    options = {"cwd": ROOT} | options
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=errors, text=True, **options
    ) as process:
        try:
            assert process.stdout is not None
            found = _URL.search(line := process.stdout.readline())
            if found is None:
                raise RuntimeError(f"the service must print its URL (got {line!r})")
            yield Served(process, found[0])
        finally:
            process.terminate()
