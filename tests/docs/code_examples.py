"""Runner of the code on the pages, in Python and JavaScript."""

from __future__ import annotations

import contextlib
import gc
import io
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from tests.environments import python_of
from tests.service.server_process import start_process

KSERVE = "from kserve import"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
# printed after each block
END = "-- end of a block --\n"


def python_script(page: str) -> tuple[str, list[str]]:
    """Return the Python blocks of a page as a script, and the output shown under each."""
    blocks = BLOCK.findall(page)
    script = "".join(f"{code}\nprint({END!r}, end='')\n" for code, _ in blocks)
    return script, [shown for _, shown in blocks]


@contextlib.contextmanager
def serving(*flags: str) -> Iterator[str]:
    """Start the service with flags and yield its host and port."""
    with start_process("--threads=1", *flags) as (_, url):
        yield url.removeprefix("http://")


def run_client(language: str, code: str) -> str:
    """Run the code of a client and return its standard output."""
    if language == "javascript":
        return run([str(Path(sys.executable).parent / "node"), "--input-type=module", "-e", code])
    return run([*python_of("kserve"), "-c", code]) if KSERVE in code else run_python(code)


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_python(code: str) -> str:
    """Run code as a script, in this process, and return its standard output.

    A process of its own would spend most of its time on imports.
    """
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own pages
        # scripts leave their connections to the end of the process
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    return printed.getvalue()
