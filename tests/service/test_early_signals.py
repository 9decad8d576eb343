"""Signals that arrive while the process still imports modules."""

import subprocess
import sys

import httpx
import pytest

from tests.service.conftest import StartServer
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes

# the service with a signal during its imports
INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "uvicorn":
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Interrupt())
from fillmask.__main__ import main
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGHUP does not exist there")
def test_sighup_before_anything_is_loaded(start_server: StartServer) -> None:
    # A signal to reload does not end a process that has not loaded a bundle yet.
    with start_server(code=INTERRUPTED.format(signal="SIGHUP"), forks=False) as (_, url):
        assert httpx.post(f"{url}/fill-mask", json={"inputs": "the [MASK]"}).is_success


def test_sigterm_before_anything_is_loaded(tiny: Tiny) -> None:
    # The process exits with code 0 and prints nothing.
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(signal="SIGTERM"), f"--bundle={tiny.path}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
