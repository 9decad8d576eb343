"""The service as a separate process on a free port."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import pytest

from tests.service.forked import ForkedProcess, fork

Process = subprocess.Popen[str] | ForkedProcess

SERVE = "import sys; from fillmask.__main__ import main; sys.exit(main())"


def run_process(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code that may find the modules of the service imported, for at most 60 s."""
    if sys.platform != "linux":
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    with tempfile.TemporaryFile("w+") as errors, fork(code, [*arguments], errors) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        exit_code = process.wait(60)
        errors.seek(0)
        return subprocess.CompletedProcess(code, exit_code, printed, errors.read())


@contextlib.contextmanager
def start_process(
    *flags: str,
    code: str = SERVE,
    command: Sequence[str] = (),
    errors: IO[str] | None = None,
    forks: bool = True,
    **options: Any,
) -> Iterator[tuple[Process, str]]:
    """Start the service, yield the process and its address, and kill it at the end.

    Args:
        flags: command-line flags of fillmask-serve.
        code: Python code that starts the service.
        command: command that starts it in place of the code.
        errors: file for its standard error, by default a file of its own.
        forks: whether a process that has imported the service may fork the new process, as it does
            on Linux. Otherwise the process imports the service itself.
        options: arguments of `subprocess.Popen` for a command.
    """
    arguments = ["--port", "0", *flags]
    with contextlib.ExitStack() as ending:
        errors = errors or ending.enter_context(tempfile.TemporaryFile("w+"))
        process: Process
        if forks and not command and sys.platform == "linux":
            process = ending.enter_context(fork(code, arguments, errors))
        else:
            process = ending.enter_context(
                subprocess.Popen(
                    [*(command or (sys.executable, "-c", code)), *arguments],
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    **options,
                )
            )
            ending.callback(process.kill)
        assert process.stdout is not None
        line = next((line for line in process.stdout if " serves " in line), "")
        if not line:
            process.wait(10)
            errors.seek(0)
            pytest.fail(f"the service did not start: {errors.read()}")
        yield process, line.split(" on ")[1].split(",")[0]
