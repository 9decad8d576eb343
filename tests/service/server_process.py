"""The service as a process of its own, on a free port."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def start_process(
    *flags: str, command: tuple[str, ...] = ("-m", "service")
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the service; gives the process and its address, and kills it at the end.

    Args:
        flags: of fillmask-serve.
        command: arguments of Python, where they are not the service's own.
    """
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, *command, "--port", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if " serves " in line), "")
            if not line:
                process.wait(10)
                errors.seek(0)
                pytest.fail(f"the service did not start: {errors.read()}")
            yield process, line.split(" on ")[1].split(",")[0]
        finally:
            process.kill()
