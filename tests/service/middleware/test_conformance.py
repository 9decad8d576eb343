"""Requests as bytes over raw sockets to a real process, where our layers meet the HTTP server.

h11 has its own tests of HTTP's grammar.
"""

import contextlib
import http.client
import socket
import time
from dataclasses import dataclass
from typing import BinaryIO

import pytest

from tests.service.server_process import start_process
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes
KEY = "a-key-of-twenty-chars"

BODY = b'{"inputs": "the [MASK]"}'
HOST = b"Host: fillmask\r\n"
JSON = HOST + b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
GET = b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /fill-mask HTTP/1.1\r\n" + JSON + LENGTH + b"\r\n" + BODY
CHUNKED = b"POST /fill-mask HTTP/1.1\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
KB = b"x" * 1024


def get(fields: bytes = HOST, line: bytes = b"GET /health/live HTTP/1.1") -> bytes:
    return line + b"\r\n" + fields + b"\r\n"


def post(fields: bytes, body: bytes = BODY) -> bytes:
    return b"POST /fill-mask HTTP/1.1\r\n" + JSON + fields + b"\r\n" + body


@dataclass(frozen=True)
class Case:
    """Bytes to send and the expected statuses.

    Attributes:
        rule: section of the RFC and the rule in a few words.
        sent: the bytes, or parts of them that are sent with pauses.
        statuses: statuses of all responses in order, including interim responses.
        closed: whether the server closes the connection instead of answering one more request.
        half_close: whether the client closes its writing side after the last part.
    """

    rule: str
    sent: bytes | tuple[bytes, ...]
    statuses: tuple[int, ...]
    closed: bool = False
    half_close: bool = False

    @property
    def parts(self) -> tuple[bytes, ...]:
        return (self.sent,) if isinstance(self.sent, bytes) else self.sent


CASES = [
    Case("9112 3.2.4: asterisk form", get(line=b"OPTIONS * HTTP/1.1"), (404,)),
    Case("3986 2.1: percent-encoded", get(line=b"GET /health%2Flive HTTP/1.1"), (200,)),
    Case("3986 2.1: percent-encoded, not UTF-8", get(line=b"GET /%ff HTTP/1.1"), (404,)),
    Case(
        "9110 5.5: white space around a value",
        post(LENGTH + b"X-Request-Timeout-Ms: \t 9000 \t \r\n"),
        (200,),
    ),
    Case(
        "6585 5: the head behind a long body has a limit of its own",
        (post(b"Content-Length: 40960\r\n", KB * 40) + GET[:-9], GET[-9:]),
        (400, 200),
    ),
    Case("9110 8.4: identity", post(LENGTH + b"Content-Encoding: Identity\r\n"), (200,)),
    Case(
        "9110 15.5.16: another coding",
        post(LENGTH + b"Content-Encoding: gzip\r\n"),
        (415,),
        closed=True,
    ),
    Case("9112 6: a body in pieces", (POST[:-9], POST[-9:-3], POST[-3:]), (200,)),
    Case(
        "9110 8.6: 5,000 digits",
        post(b"Content-Length: %b\r\n" % (b"9" * 5000)),
        (400,),
        closed=True,
    ),
    Case(
        "9110 8.6: a body that is not wanted",
        get(HOST + b"Content-Length: 3\r\n") + b"abc",
        (200,),
        closed=True,
    ),
    Case("9112 7.1: chunks, and the next request", CHUNKED + CHUNKS + GET, (200, 200)),
    Case("9112 9.3.2: 300 pipelined requests", GET * 300, (200,) * 300),
    Case("9112 2.2: garbage takes no answer away", POST + b"\0\0\0\0", (200, 400), closed=True),
    Case("9112 9.6: close", get(HOST + b"Connection: close\r\n") + GET, (200,), closed=True),
    Case("9112 8: half-closed within a body", POST[:-3], (), closed=True, half_close=True),
    Case(
        "9110 7.8: h2c with a body, as Java's client and curl --http2 send it",
        post(
            LENGTH + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
            b"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
        ),
        (200,),
    ),
    Case(
        "6455 4.2: WebSocket is not supported",
        get(HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"),
        (200,),
    ),
    Case(
        "9110 10.1.1: 100 before the body",
        (post(LENGTH + b"Expect: 100-continue\r\n", b""), BODY),
        (100, 200),
    ),
    Case(
        "9110 10.1.1: no 100 where the answer is final",
        post(b"Content-Length: 99999999\r\nExpect: 100-continue\r\n", b""),
        (413,),
        closed=True,
    ),
    Case("9110 9.3.2: HEAD has no body", get(line=b"HEAD /info HTTP/1.1") + GET, (200, 200)),
]
# The server closes these connections before it has read all bytes, and the reset may overtake its
# response.
ENDLESS = {
    "a head": b"GET / HTTP/1.1\r\n" + (b"X: " + KB + b"\r\n") * 40,
    "line ends": b"\r\n" * 20_000,
    "extensions of a chunk": CHUNKED + b"1;a=" + KB * 60,
    "trailers": CHUNKED + b"0\r\n" + b"a:b\r\n" * 20_000,
}


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
            if len(parts) > 1:
                time.sleep(0.05)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_rule(tiny_url: str, case: Case) -> None:
    # The connection stays usable or closes after the responses, as the case requires.
    method = "HEAD" if case.parts[0].startswith(b"HEAD") else "GET"
    with connected(tiny_url) as client, client.makefile("rb") as stream:
        send(client, case.parts)
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


@pytest.mark.parametrize("sent", ENDLESS.values(), ids=ENDLESS)
def test_endless_request_ends(tiny_url: str, sent: bytes) -> None:
    with connected(tiny_url) as client, client.makefile("rb") as stream:
        send(client, (sent,))
        with contextlib.suppress(ConnectionError):
            answer = read_answer(stream, "GET")
            assert answer is None or (answer[0], stream.read()) == (400, b"")


def test_trailers_cannot_authenticate(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> None:
    # The service ignores an API key in a trailer.
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(KEY)
    trailer = b"Authorization: Bearer " + KEY.encode() + b"\r\n\r\n"
    with (
        start_process("--bundle", str(tiny.path), "--api-keys-file", str(keys)) as (_, url),
        connected(url) as client,
        client.makefile("rb") as stream,
    ):
        client.sendall(CHUNKED + CHUNKS[:-2] + trailer)
        answer = read_answer(stream, "POST")
        assert answer is not None
        assert answer[0] == 401
        assert stream.read() == b""


def connected(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=10)
