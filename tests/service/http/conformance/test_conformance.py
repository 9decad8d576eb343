"""Conformance with the RFCs of HTTP, over raw sockets to a real process."""

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from tests.service.http.conformance.cases import CASES, CHUNK, CHUNKED, GET, JSON, LAST, Case
from tests.service.server_process import start_process
from tests.service.tiny import Tiny

KEY = "a-key-of-twenty-chars"


@pytest.fixture(scope="module")
def address(tiny: Tiny) -> Iterator[tuple[str, int]]:
    """Host and port of a running service."""
    with start_process("--bundle", str(tiny.path)) as (_, url):
        yield _address(url)


def read_answer(stream: BinaryIO, method: str) -> tuple[int, bytes] | None:
    """Return the status and the body of the next response, or None at the end of the connection."""
    line = stream.readline()
    if not line:
        return None
    version, status, _ = line.split(b" ", 2)
    assert version == b"HTTP/1.1"
    fields = http.client.parse_headers(stream)
    length = 0 if method == "HEAD" or status == b"100" else int(fields["content-length"])
    return int(status), stream.read(length)


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
            while case.half_close and answer == (100, b""):  # interim on a busy machine
                answer = read_answer(stream, method)
            assert answer is not None, f"closed in place of {status}"
            assert answer[0] == status, answer
            if status >= 400:
                assert answer[1].startswith(b'{"error":"')
            method = "GET"
        if case.closed:
            with contextlib.suppress(ConnectionError):
                assert read_answer(stream, method) is None
        else:
            client.sendall(GET)
            assert read_answer(stream, method) == (200, b'{"status":"live"}')


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
        head = JSON + b"Authorization: Bearer " + KEY.encode() + b"\r\n"
        client.sendall(
            b"POST /fill-mask HTTP/1.1\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\n"
        )
        client.sendall(CHUNK + LAST)
        answer = read_answer(stream, "POST")
        assert answer is not None
        assert answer[0] == 200


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)
