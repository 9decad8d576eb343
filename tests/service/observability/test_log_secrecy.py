"""Logs of a real process, which must contain no texts of clients."""

import contextlib
import json
import re
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from tests.service.server_process import Process, start_process
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes

TRACE = "0af7651916cd43dd8448eb211c80319c"
SECRETS = {
    where: f"secret-{number}-{where}-zebra"
    for number, where in enumerate(
        ("text", "target", "key", "password", "cookie", "query", "path", "field", "name", "header")
    )
}
# the service with bugs for certain texts
BUGGY = """
import asyncio, sys
from fillmask.tasks.score import pipeline as scoring
from fillmask.tasks.fill_mask import pipeline
plan = pipeline.FillMaskPipeline.plan
def with_bug(self, inputs):
    text = inputs.texts[0]
    if "bug in task" in text:
        async def work(): raise RuntimeError(text)
        asyncio.get_running_loop().create_task(work())
    elif "bug in callback" in text:
        def callback(text): raise RuntimeError(text)
        asyncio.get_running_loop().call_soon(callback, text)
    elif "bug" in text:
        try: raise KeyError(text)
        except KeyError as error: raise RuntimeError(text) from error
    return plan(self, inputs)
pipeline.FillMaskPipeline.plan = with_bug
from fillmask.engine.runtime import Runtime
run = Runtime.run
def run_with_bug(self, batch):
    if len(batch.passes) == 3:
        raise ValueError("sec" + "ret-in-the-model")  # Python 3.13 logs this line of source code
    return run(self, batch)
Runtime.run = run_with_bug
from fillmask.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """File with one valid API key."""
    file = tmp_path / "keys"
    file.write_text(SECRETS["key"])
    return file


@contextlib.contextmanager
def process(tiny: Tiny, *flags: str, output: IO[str]) -> Iterator[tuple[Process, str]]:
    """Start a service with deliberate bugs and write its errors to a file."""
    with start_process(f"--bundle={tiny.path}", *flags, code=BUGGY, errors=output) as (
        running,
        url,
    ):
        yield running, url
        running.kill()
        running.wait()
        assert running.stdout is not None
        assert running.stdout.read() == ""


def _read(output: IO[str]) -> str:
    output.seek(0)
    return str(output.read())


def ask_for_trouble(url: str) -> list[int]:
    """Send requests with secrets in each part and return the statuses of the responses.

    The requests succeed or fail in different ways.
    """
    text = f"{SECRETS['text']} [MASK]"
    headers = {
        "Authorization": f"Bearer {SECRETS['key']}",
        "Cookie": f"session={SECRETS['cookie']}",
        "X-Private": SECRETS["header"],
        "traceparent": f"00-{TRACE}-b7ad6b7169203331-01",
    }
    statuses = []
    with httpx.Client(base_url=url, headers=headers, timeout=30) as client:

        def post(path: str, body: object, **more: Any) -> None:
            statuses.append(client.post(path, json=body, **more).status_code)

        query = {"q": SECRETS["query"]}
        post("/fill-mask", {"inputs": text}, params=query)
        post("/fill-mask", {"inputs": text, "parameters": {"targets": [SECRETS["target"]]}})
        post("/fill-mask", {"inputs": SECRETS["text"]})
        post("/fill-mask", {"inputs": text, SECRETS["field"]: 1})
        post("/fill-mask", {"inputs": [text] * 100})
        post(f"/models/{SECRETS['name']}", {"inputs": text})
        post("/score", {"inputs": SECRETS["text"]})
        post("/score", {"inputs": text})
        for bug in ("bug", "bug in task", "bug in callback"):
            post("/fill-mask", {"inputs": f"{bug} {text}"}, params=query)
        post("/fill-mask", {"inputs": [text] * 3})
        wrong = {"Authorization": f"Bearer {SECRETS['password']}"}
        post("/fill-mask", {"inputs": text}, headers=wrong)
        post("/fill-mask", {"inputs": text}, headers={"X-Request-ID": f"<{SECRETS['header']}>"})
        post("/fill-mask", {"inputs": text}, headers={"X-Request-Timeout-Ms": SECRETS["header"]})
        statuses.append(client.get(f"/{SECRETS['path']}", params=query).status_code)
        statuses.append(client.delete("/fill-mask", params=query).status_code)
        broken = client.post("/fill-mask", content=SECRETS["text"])
        statuses.append(broken.status_code)
    host, _, port = url.removeprefix("http://").partition(":")
    for head in (f"{SECRETS['text']}\r\n\r\n", f"GET /{SECRETS['path']} HTTP/1.1\r\nBad\r\n\r\n"):
        with socket.create_connection((host, int(port))) as client_socket:
            client_socket.sendall(head.encode())
            assert client_socket.recv(1000).startswith(b"HTTP/1.1 400")
    return statuses


def test_no_secret_is_logged(keys: Path, tiny: Tiny) -> None:
    # Even at the level debug, no secret from any part of a request is in the log.
    flags = ("--log-level=debug", "--access-log=all", "--log-format=json", "--drain-delay-s=0")
    with tempfile.TemporaryFile("w+") as output:
        with process(tiny, *flags, f"--api-keys-file={keys}", output=output) as (running, url):
            statuses = ask_for_trouble(url)
            running.send_signal(signal.SIGTERM)
            assert running.wait(20) == 0
        said = _read(output)
    assert {200, 400, 401, 404, 405, 415, 422, 500} <= set(statuses), statuses
    assert "zebra" not in said.lower()
    assert "secret" not in said
    log = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    requests = [line for line in log if line["message"] == "request"]
    assert [line["status"] for line in requests] == statuses
    assert {line["trace_id"] for line in requests} == {TRACE}
    assert all(re.fullmatch("[0-9a-f]{32}", line["request_id"]) for line in requests)
    assert {line.get("model") for line in requests if line["route"] == "/score"} == {"tiny"}
    # the log has the location of every bug
    told = " ".join(line["message"] for line in log)
    for place in ("with_bug", "run_with_bug", "work", "callback"):
        assert f"in {place}\n" in told


def test_log_texts_logs_bodies(tiny: Tiny) -> None:
    # With log_texts the service logs a warning at the start. The log contains no headers.
    flags = ("--log-level=debug", "--log-texts=true", "--log-format=json", "--drain-delay-s=0")
    with tempfile.TemporaryFile("w+") as output:
        with process(tiny, *flags, output=output) as (running, url):
            headers = {"Authorization": f"Bearer {SECRETS['key']}"}
            for path in ("/fill-mask", "/score"):
                httpx.post(url + path, json={"inputs": SECRETS["text"]}, headers=headers)
            running.terminate()
            assert running.wait(20) == 0
        log = [json.loads(line) for line in _read(output).splitlines() if line.startswith("{")]
    bodies = [json.loads(line["body"]) for line in log if line["message"] == "request body"]
    assert bodies == [{"inputs": SECRETS["text"]}] * 2
    assert any("log_texts is true" in line["message"] for line in log if line["level"] == "warning")
    assert SECRETS["key"] not in str(log)
