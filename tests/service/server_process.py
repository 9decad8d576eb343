"""The service as a separate process on a free port."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def start_process(
    *flags: str, command: tuple[str, ...] = ("-m", "fillmask")
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the service, yield the process and its address, and kill it at the end.

    Args:
        flags: command-line flags of fillmask-serve.
        command: arguments of the Python interpreter that start the service.
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
