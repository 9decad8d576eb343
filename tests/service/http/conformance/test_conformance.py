"""Conformance with the RFCs of HTTP, over raw sockets to a real process."""

import contextlib
import http.client
import socket
import time
from typing import BinaryIO

import pytest

from tests.service.http.conformance.cases import CASES, CHUNK, CHUNKED, ENDLESS, GET, Case
from tests.service.server_process import start_process
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes
KEY = "a-key-of-twenty-chars"


@pytest.fixture(scope="module")
def address(tiny_url: str) -> tuple[str, int]:
    """Host and port of a running service."""
    return _address(tiny_url)


def read_answer(stream: BinaryIO, method: str) -> tuple[int, bytes] | None:
    """Return the status and the body of the next response, or None at the end of the connection."""
    line = stream.readline()
    if not line:
        return None
    version, status, _ = line.split(b" ", 2)
    assert version == b"HTTP/1.1"
    fields = http.client.parse_headers(stream)
    length = fields["content-length"]
    if method == "HEAD" or status == b"100":
        length = "0"
    if length is None:  # a refusal by the server itself
        assert fields["connection"] == "close"
        return int(status), stream.read()
    return int(status), stream.read(int(length))


def send(client: socket.socket, parts: tuple[bytes, ...]) -> None:
    """Send all parts, or fewer if the server closes the connection."""
    with contextlib.suppress(ConnectionError):
        for part in parts:
            client.sendall(part)
            if 1 < len(parts) < 9:
                time.sleep(0.05)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_rule(address: tuple[str, int], case: Case) -> None:
    # The connection stays usable or closes after the responses, as the case requires.
    method = "HEAD" if case.sent[0].startswith(b"HEAD") else "GET"
    with socket.create_connection(address, timeout=10) as client, client.makefile("rb") as stream:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        send(client, case.sent)
        if case.half_close:
            client.shutdown(socket.SHUT_WR)
        for status in case.statuses:
            answer = read_answer(stream, method)
            assert answer is not None, f"closed in place of {status}"
            assert answer[0] == status, answer
            method = "GET"
        if case.closed:
            with contextlib.suppress(ConnectionError):
                assert read_answer(stream, method) is None
        else:
            client.sendall(GET)
            assert read_answer(stream, method) == (200, b'{"status":"live"}')


@pytest.mark.parametrize("case", ENDLESS, ids=lambda case: case.rule)
def test_endless_request_ends(address: tuple[str, int], case: Case) -> None:
    with socket.create_connection(address, timeout=10) as client, client.makefile("rb") as stream:
        send(client, case.sent)
        with contextlib.suppress(ConnectionError):
            answer = read_answer(stream, "GET")
            assert answer is None or (answer[0], stream.read()) == (400, b"")


def test_cases_are_many_and_distinct() -> None:
    assert len({case.rule for case in CASES}) == len(CASES) > 60


def test_trailers_cannot_authenticate(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> None:
    # The service ignores an API key in a trailer.
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(KEY)
    trailer = b"0\r\nAuthorization: Bearer " + KEY.encode() + b"\r\n\r\n"
    with (
        start_process("--bundle", str(tiny.path), "--api-keys-file", str(keys)) as (_, url),
        socket.create_connection(_address(url), timeout=10) as client,
        client.makefile("rb") as stream,
    ):
        client.sendall(CHUNKED + CHUNK + trailer)
        answer = read_answer(stream, "POST")
        assert answer is not None
        assert answer[0] == 401
        assert stream.read() == b""


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)
