"""Start, errors and exit of a service process."""

import concurrent.futures
import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from fillmask.errors import SettingsError
from fillmask.serve import _bind
from fillmask.settings import Settings
from tests.service.conftest import EditBundle, StartServer
from tests.service.held_model import HELD
from tests.service.put_bundle import until
from tests.service.server_process import Process, run_process
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes
BODY = {"inputs": "the [MASK]"}
JSON = {"Content-Type": "application/json"}


def await_run(process: Process) -> None:
    """Wait until the held model has begun a run."""
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"


def test_sigterm_finishes_accepted_requests(start_server: StartServer, held: Path) -> None:
    # Waiting and running requests get their responses. New connections fail.
    with (
        start_server("--threads=1", "--drain-delay-s=0", code=HELD) as (process, url),
        contextlib.ExitStack() as closing,
    ):
        address = url.removeprefix("http://")
        running, waiting = (
            closing.enter_context(contextlib.closing(http.client.HTTPConnection(address)))
            for _ in range(2)
        )
        held.touch()
        running.request("POST", "/fill-mask", json.dumps(BODY), JSON)
        await_run(process)
        waiting.request("POST", "/fill-mask", json.dumps(BODY), JSON)
        process.send_signal(signal.SIGTERM)
        until(lambda: refuses(url))
        held.unlink()
        for connection in (running, waiting):
            answer = connection.getresponse()
            assert answer.status == 200
            assert len(json.load(answer)) == 5
        assert process.wait(10) == 0


def refuses(url: str) -> bool:
    try:
        httpx.get(f"{url}/health/ready")
    except httpx.ConnectError:
        return True
    return False


def test_drain_delay_after_sigterm_and_a_second_signal(start_server: StartServer) -> None:
    # Load balancers avoid a service that is not ready. Requests during the delay get responses. A
    # second signal ends the process at once.
    with start_server("--drain-delay-s=60") as (process, url), httpx.Client() as client:
        before = client.post(f"{url}/fill-mask", json=BODY)
        assert "connection" not in before.headers
        process.send_signal(signal.SIGTERM)
        until(lambda: client.get(f"{url}/health/ready").status_code == 503)
        after = client.post(f"{url}/fill-mask", json=BODY)
        assert after.json() == before.json()
        assert after.headers["connection"] == "close"
        with httpx.Client() as another:
            ready, live = (another.get(f"{url}/health/{one}") for one in ("ready", "live"))
        assert ready.status_code == 503
        assert ready.json() == {
            "error": "The service is shutting down; wait until it is ready again."
        }
        assert live.is_success
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == -signal.SIGINT


# the service with a worker that ends on a batch of two texts
MORTAL = """
import sys
from fillmask.engine.runtime import Runtime
run = Runtime.run
def die(self, batch):
    if len(batch.passes) == 2:
        raise SystemExit("what the user wrote")
    return run(self, batch)
Runtime.run = die
from fillmask.__main__ import main
sys.exit(main())
"""


def test_dead_worker_ends_the_process(start_server: StartServer) -> None:
    # Waiting requests get an error. The process exits so that its supervisor restarts it.
    with start_server("--threads=1", code=MORTAL) as (process, url):
        assert httpx.post(f"{url}/fill-mask", json=BODY).is_success
        answer = httpx.post(f"{url}/fill-mask", json={"inputs": ["[MASK]"] * 2})
        assert answer.status_code == 503
        assert answer.json() == {"error": "The service has failed; restart it."}
        assert process.wait(10) == 1


def test_grace_period_is_bounded(start_server: StartServer, held: Path) -> None:
    # Requests that outlast the grace period get an error. The exit code is 0.
    flags = ("--threads=1", "--drain-delay-s=0", "--shutdown-grace-s=0")
    with (
        start_server(*flags, code=HELD) as (process, url),
        concurrent.futures.ThreadPoolExecutor() as pool,
    ):
        held.touch()
        asked = pool.submit(httpx.post, f"{url}/fill-mask", json=BODY, timeout=20)
        await_run(process)
        process.send_signal(signal.SIGTERM)
        assert asked.result().status_code == 503
        assert "because it is shutting down" in asked.result().json()["error"]
        held.unlink()
        assert process.wait(10) == 0


# the service, which prints its event loop at the end
SPY = """
import sys
from fillmask.__main__ import main
code = main()
print("loop", "uvloop" in sys.modules)
sys.exit(code)
"""


def test_serves_on_the_fast_loop_and_ends_with_0_at_ctrl_c(start_server: StartServer) -> None:
    # The start prints exactly one line. Without uvloop the service is slower.
    with start_server(code=SPY) as (process, url):
        assert len(httpx.post(f"{url}/fill-mask", json=BODY).json()) == 5
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stdout is not None
        assert process.stdout.read() == f"loop {sys.platform != 'win32'}\n"


def test_client_with_a_large_body_reads_413(tiny_url: str) -> None:
    for content in (b"x" * 5_000_000, iter([b"x" * 100_000] * 50)):
        assert httpx.post(f"{tiny_url}/fill-mask", content=content).status_code == 413


# Starts that fail, one after the other in one process. Each start prints its exit code. On the port
# LATE another socket begins to listen while the model is loading.
REFUSED = """
import json, os, socket, sys
from fillmask import serve
from fillmask.__main__ import main
taken = socket.socket()
taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
taken.bind(("127.0.0.1", 0))
serve.in_background = lambda stream: stream  # keeps the order of lines of several starts
load_all = serve.ModelRegistry.load_all
async def load_and_listen(registry):
    await load_all(registry)
    taken.listen()
for variables, flags in json.loads(sys.argv[1]):
    os.environ.update(variables)
    sys.argv[1:] = [flag.replace("LATE", str(taken.getsockname()[1])) for flag in flags]
    serve.ModelRegistry.load_all = load_and_listen if "LATE" in str(flags) else load_all
    print(main(), flush=True)
    print(f"end of {sys.argv}", file=sys.stderr, flush=True)
    for name in variables:
        del os.environ[name]
"""


def test_a_start_that_fails_is_one_sentence(
    edit_bundle: EditBundle, tiny: Tiny, tmp_path: Path
) -> None:
    # The service checks the port before it loads the model. But several processes may bind a port
    # on which none of them listens, so the last start finds its port in use only after the load.
    nowhere = tmp_path / "none"
    bad = edit_bundle(lambda bundle: bundle["golden"]["prompts"][0].update(text="no mask"))
    in_use = "because another process listens there; set --port to another"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases: list[tuple[dict[str, str], list[str], str]] = [
            ({"FILLMASK_PROT": "1"}, [], 'Unknown variable "FILLMASK_PROT"; remove it'),
            ({}, ["--port", "x"], '--port must be a whole number from 0 to 65535 (got "x").'),
            (
                {},
                ["--port=0", "--bundle", str(nowhere)],
                f"The bundle is invalid: {nowhere} is not a directory; set bundle to the ",
            ),
            (
                {},
                ["--port=0", "--bundle", str(bad)],
                "The bundle does not work on this machine: the model cannot fill golden prompt 0",
            ),
            (
                {},
                ["--port", str(port), "--bundle", str(nowhere)],
                f"The service cannot listen on 127.0.0.1 port {port}, {in_use} port, or to 0 for ",
            ),
            (
                {},
                ["--port=LATE", "--bundle", str(tiny.path)],
                "The service cannot listen on 127.0.0.1 port ",
            ),
        ]
        done = run_process(REFUSED, json.dumps([case[:2] for case in cases]))
    assert (done.returncode, done.stdout.split()) == (0, ["2"] * len(cases)), done.stderr
    lines = done.stderr.splitlines()
    assert all(line.startswith("end of ") for line in lines[1::2]), done.stderr
    for line, (_, _, sentence) in zip(lines[::2], cases, strict=True):
        assert line.startswith(sentence)
    assert in_use in lines[-2]


def test_addresses_that_the_service_cannot_use() -> None:
    # For the metrics, 0 is the main port. 192.0.2.1 is an address for documentation.
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=r"there; set --metrics-port to another port\.$"):
            _bind(Settings(metrics_port=port), "metrics_port")
    with pytest.raises(SettingsError) as caught:
        _bind(Settings(host="192.0.2.1", port=0), "port")
    assert str(caught.value) == (
        "The service cannot listen on 192.0.2.1 port 0 (cannot assign requested address); "
        "set another host or port."
    )


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
