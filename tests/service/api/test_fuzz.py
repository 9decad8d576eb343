"""Unusual requests, generated from the OpenAPI document or as random bytes.

Every response must agree with the document, arrive in time and have a status other than 500.
The requests from the document are slow. `make api-fuzz` runs more cases of all.
"""

import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.api.labels.bundles import write_label_bundle
from tests.service.server_process import start_process

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "8"))
CONFIG = Path(__file__).with_name("schemathesis.toml")
CHECKS = Path(__file__).with_name("schemathesis_checks.py")
NAME = "fillmask-minilm-en"
PATHS = [
    "/fill-mask",
    "/score",
    "/classify",
    "/",
    f"/models/{NAME}",
    f"/v1/models/{NAME}:predict",
    f"/v2/models/{NAME}/infer",
]
WORDS = ["[MASK]", "the", "dog", "[SEP]", "é", "😀"]
WORDS += ["\u202e", "\u200b", "\u0000", "\ufeff", "\U0001d518", "\u0301" * 50]
PARAMETERS = ["top_k", "targets", "granularity", "strategy", "order", "on_long_text"]
PARAMETERS += ["prefix", "span", "part"]
TIMEOUT_S = 20

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a service process with the built-in model."""
    log = tmp_path_factory.mktemp("fuzz") / "log"
    with log.open("w") as errors, start_process(errors=errors) as (process, url):
        yield url
        assert process.poll() is None
    assert "Traceback" not in log.read_text()


@pytest.mark.slow
def test_answers_are_as_documented(url: str, tmp_path: Path) -> None:
    # Schemathesis sends valid and invalid requests, alone and in sequences.
    # In addition to its own checks, schemathesis runs the check in schemathesis_checks.py.
    # The paths with a version, /models/{name} and / have the same endpoints as other paths.
    check_answers(url, tmp_path, EXAMPLES, "--exclude-path-regex", "/versions/|^/models/|^/$")


@pytest.mark.slow
def test_answers_with_labels_are_as_documented(tmp_path: Path) -> None:
    # The OpenAPI document has the request bodies for the tasks of the model.
    bundle = write_label_bundle(tmp_path / "bundle", fills=False)
    log = tmp_path / "log"
    # the vocabulary has 101 tokens, and the document allows the top_k of the settings
    flags = ("--bundle", str(bundle), "--max-top-k", "20")
    with log.open("w") as errors, start_process(*flags, errors=errors) as (process, url):
        # only some operations, because the others are the same as for the built-in model
        operations = r"^/classify$|^/v2/models/\{name\}/infer$"
        selected = ("--include-path-regex", operations)
        check_answers(url, tmp_path, max(1, EXAMPLES // 3), *selected)
        assert process.poll() is None
    assert "Traceback" not in log.read_text()


def check_answers(url: str, tmp_path: Path, examples: int, *flags: str) -> None:
    """Run schemathesis against a service, with this number of examples per operation."""
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(CONFIG)),
            *("run", f"{url}/openapi.json", "--checks", "all", "--no-color"),
            *("--max-examples", str(examples), "--request-timeout", str(TIMEOUT_S)),
            *("--seed", "0", *flags),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,  # directory of its findings
        env={**os.environ, "SCHEMATHESIS_HOOKS": str(CHECKS)},
    )
    sys.stdout.write(done.stdout)  # `make api-fuzz` shows it
    assert done.returncode == 0, done.stdout
    generated = re.search(r"(\d+) generated", done.stdout)
    assert generated is not None
    assert int(generated[1]) > 20 * examples


def value(draw: random.Random, depth: int = 0) -> Any:
    """Return a random JSON value."""
    kind = draw.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return draw.choice([0, -1, 1, 10**30, 2**63, -(2**63) - 1, 0.5, 1e308, -0.0])
    if kind == 1:
        return draw.choice([True, False, None])
    if kind < 6:
        return " ".join(draw.choices(WORDS, k=draw.randrange(12)))
    if kind == 6:
        return [value(draw, depth + 1) for _ in range(draw.randrange(5))]
    names = ["inputs", "parameters", "instances", "top_k", "targets", "on_error", "name", "data"]
    names += ["text", "text_pair"]
    return {draw.choice(names): value(draw, depth + 1) for _ in range(draw.randrange(5))}


def bodies(draw: random.Random) -> Iterator[bytes]:
    """Yield random bodies, nearly valid bodies and damaged valid bodies."""
    yield b"\xff\xfe" + draw.randbytes(draw.randrange(200))
    yield json.dumps(value(draw)).encode()
    parameters = {
        draw.choice(PARAMETERS): (
            draw.choice(["word", "joint", "window", 3, [0, 3], ["dog", "the cat"], value(draw)])
        )
    }
    body: dict[str, Any] = {"inputs": value(draw), "parameters": parameters}
    yield json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")
    good = bytearray(json.dumps({"inputs": "the [MASK]", "parameters": {"top_k": 3}}).encode())
    for _ in range(draw.randrange(1, 4)):
        good[draw.randrange(len(good))] = draw.randrange(256)
    yield bytes(good)
    yield b'{"inputs": %b}' % draw.choice(
        [
            b"[" * 100_000,
            b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
            b"1" * 50_000,
            b"1e999999",
            b"NaN",
            b"-Infinity",
            b'"\\ud800"',
            b'"\\u0000[MASK]"',
            b'"' + b"a" * 100_000 + b' [MASK]"',
            b'"[MASK] ' + b"ab" * 50_000 + b'"',
            b'"[MASK]' + b" [MASK]" * 10_000 + b'"',
            json.dumps("\u202e[MASK]\u200b" * 20, ensure_ascii=False).encode(),
            b'["[MASK]"' + b',"[MASK]"' * 5_000 + b"]",
            b'[{"text":"a"}' + b',{"text":"[MASK]","text_pair":"a"}' * 5_000 + b"]",
            b'{"text":"[MASK]","text_pair":"' + b"a " * 50_000 + b'"}',
        ]
    )


def test_no_body_breaks_it(url: str) -> None:
    # Every endpoint responds to each random body within 20 s.
    draw = random.Random(EXAMPLES)  # noqa: S311 - a choice, not a secret
    types = ["application/json"] * 8
    types += ["text/plain", "", "application/json; charset=utf-16", "multipart/form-data"]
    statuses = set()
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT_S)
    for _ in range(EXAMPLES * 4):
        for body in bodies(draw):
            path, kind = draw.choice(PATHS), draw.choice(types)
            connection.request("POST", path, body, {"Content-Type": kind} if kind else {})
            answer = connection.getresponse()
            content = json.loads(answer.read())
            statuses.add(answer.status)
            assert answer.status in {200, 400, 413, 415, 422}, (path, kind, body[:300], content)
            if answer.status != 200:
                assert list(content) == ["error"]
                assert 0 < len(content["error"]) < 1000
    assert {200, 400, 415, 422} <= statuses
    fill = json.dumps({"inputs": "Paris is the [MASK] of France."})
    connection.request("POST", "/fill-mask", fill, {"Content-Type": "application/json"})
    best = json.loads(connection.getresponse().read())[0]
    assert best["sequence"] == "Paris is the capital of France."
    connection.close()


HEADS = [
    b"POST /fill-mask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n",
    b"POST /fill-mask HTTP/1.0\r\nContent-Type: application/json\r\n",
    b"POST /fill-mask HTTP/9.9\r\n",
    b"PUT //////%00%ff?x=%zz HTTP/1.1\r\nHost: x\r\n",
    b"GET http://elsewhere.example/metrics HTTP/1.1\r\nHost: y\r\n",
    b"GET /" + b"../" * 200 + b"etc/passwd HTTP/1.1\r\nHost: x\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n",
    b"BREW /coffee HTTP/1.1\r\nHost: x\r\n",
    b"GET /docs-assets/..%2f..%2f..%2fetc/passwd HTTP/1.1\r\nHost: x\r\n",
]
FIELDS = [
    b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"inp\r\nffffffffffffffffff\r\n',
    b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"Content-Length: 18446744073709551617\r\n\r\n{}",
    b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    b"Content-Length: +2\r\n\r\n{}",
    b"Content-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\n\r\n\x00\x01\x02",
    b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
    b"X: \x00\r\n\r\n",
    b"X : y\r\n\r\n",
    b" folded\r\n\tmore\r\n\r\n",
    b"X-Request-ID: " + b"a\x7f" * 40 + b"\r\n\r\n",
    b"X-Request-Timeout-Ms: 1e3\r\n\r\n",
    b"\r\n",
]
STATUSES = {b"100", b"200", b"400", b"404", b"405", b"413", b"415", b"422", b"501", b"505"}


def test_no_bytes_break_it(url: str) -> None:
    # The server responds or closes the connection, on average within 0.2 s per request.
    host, _, port = url.removeprefix("http://").partition(":")
    started_s = time.monotonic()
    for head in HEADS:
        for field in FIELDS:
            with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as client:
                client.sendall(head + field)
                client.shutdown(socket.SHUT_WR)
                answer = b""
                try:
                    while received := client.recv(65536):
                        answer += received
                except ConnectionResetError:
                    pass
            for status in re.findall(rb"HTTP/1\.1 (\d+) ", answer):
                assert status in STATUSES, (head, field, answer)
            assert b"root:" not in answer
            assert b"Traceback" not in answer
    # no test waits for the timeout of slow clients
    assert time.monotonic() - started_s < 0.2 * len(HEADS) * len(FIELDS)
