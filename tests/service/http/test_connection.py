"""Limits on slow and silent clients, over real sockets."""

import contextlib
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.service.conftest import StartServer
from tests.service.scrape import samples, value
from tests.service.slow_model import SLOW

# the service with short timeouts
HASTY = """
import sys
from fillmask.http import client_timeouts
client_timeouts.REQUEST_TIMEOUT_S = client_timeouts.RESPONSE_TIMEOUT_S = 1
from fillmask.__main__ import main
sys.exit(main())
"""
BODY = b'{"inputs": "the [MASK]"}'
HEAD = b"POST /fill-mask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


LONG_ANSWER = json.dumps(
    {"inputs": ["the [MASK] and [MASK]" + " " * 1500] * 64, "parameters": {"top_k": 20}}
).encode()


@pytest.fixture
def address(start_server: StartServer) -> Iterator[tuple[str, int]]:
    """Host and port of a service with short timeouts and at most four connections."""
    with start_server("--max-connections", "4", command=("-c", HASTY)) as (_, url):
        host, _, port = url.removeprefix("http://").partition(":")
        yield host, int(port)
        # the service still answers other clients
        assert httpx.post(f"{url}/fill-mask", json={"inputs": "the [MASK]"}).status_code == 200
        assert value(samples(httpx.get(f"{url}/metrics").text), "fillmask_connections") == 1


def refused(address: tuple[str, int], reason: str) -> float:
    """Return the number of connections rejected for a reason."""
    found = samples(httpx.get(f"http://{address[0]}:{address[1]}/metrics").text)
    return value(found, "fillmask_rejected_total", reason=reason, model="")


def exchange(address: tuple[str, int], *parts: bytes, pause_s: float = 0) -> bytes:
    """Send the parts and return all bytes up to the end of the connection."""
    with socket.create_connection(address, timeout=20) as client:
        with contextlib.suppress(
            ConnectionError
        ):  # the server closed the connection before the last part
            for part in parts:
                client.sendall(part)
                time.sleep(pause_s)
        return read(client)


def read(client: socket.socket) -> bytes:
    """Return all bytes up to the end of the connection."""
    answer = b""
    with contextlib.suppress(ConnectionError):  # the server closed the connection with unread bytes
        while received := client.recv(65536):
            answer += received
    return answer


def check(answer: bytes, status: int, fact: str) -> None:
    """Check that the response is an error in JSON and closes the connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer
    assert b"connection: close" in head.lower()
    [(key, message)] = json.loads(body).items()
    assert key == "error"
    assert fact in message
    assert message.endswith(".")


def test_slow_senders_get_408(address: tuple[str, int]) -> None:
    # The clients send nothing, an unfinished head, an unfinished body or only a line end.
    for parts in ([], [HEAD], [REQUEST[:-5]], [b"\r\n"]):
        check(exchange(address, *parts), 408, "must arrive within 1 s;")
    assert refused(address, "slow_client") == 4


def test_trickled_request_gets_408(address: tuple[str, int]) -> None:
    # Further bytes do not extend the timeout.
    answer = exchange(
        address, *(REQUEST[i : i + 4] for i in range(0, len(REQUEST), 4)), pause_s=0.1
    )
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_idle_connections_stay_open(address: tuple[str, int]) -> None:
    # The keep-alive timeout may be longer than the request timeout.
    url = f"http://{address[0]}:{address[1]}/fill-mask"
    with httpx.Client() as client:
        ports = set()
        for pause_s in (2.5, 2.5, 0):
            answer = client.post(url, json={"inputs": "the [MASK]"})
            assert answer.is_success
            ports.add(answer.extensions["network_stream"].get_extra_info("client_addr"))
            time.sleep(pause_s)
    assert len(ports) == 1


def test_head_has_a_size_limit(address: tuple[str, int]) -> None:
    # The limit holds for complete and incomplete heads, in one read or many.
    field = b"X-Much: " + b"x" * 8000 + b"\r\n"
    for parts in ([HEAD + field * 5 + b"\r\n"], [HEAD, *[field] * 5]):
        check(exchange(address, *parts), 431, "The request head is larger than 32768 bytes;")
    target = exchange(address, b"GET /" + b"x" * 40_000)
    check(
        target,
        414,
        "The request target is too long; send a shorter target in a head of at most 32768 bytes.",
    )
    assert refused(address, "large_head") == 3
    body = json.dumps({"inputs": "the [MASK]" + " " * 40_000}).encode()
    large = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    # bodies and earlier requests of a connection do not count as a head
    with httpx.Client() as client:
        url = f"http://{address[0]}:{address[1]}/fill-mask"
        for _ in range(3):
            assert client.post(url, content=body).status_code == 415
    assert b"at most 2048 characters" in exchange(address, large)


def test_invalid_http_gets_400(address: tuple[str, int]) -> None:
    for nonsense in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX : a\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ):
        check(exchange(address, nonsense), 400, "not valid HTTP;")
    assert refused(address, "not_http") == 7


def test_too_many_connections_get_429(address: tuple[str, int]) -> None:
    # The response has a Retry-After header.
    with contextlib.ExitStack() as held:
        for _ in range(4):
            held.enter_context(socket.create_connection(address))
        time.sleep(0.2)
        answer = exchange(address, REQUEST)
    check(answer, 429, "too many open connections; try again in 1 s")
    assert b"retry-after: 1" in answer
    time.sleep(0.2)
    assert refused(address, "connections") == 1


def test_unread_response_is_aborted(address: tuple[str, int]) -> None:
    # The abort frees the memory of the response.
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(LONG_ANSWER) + LONG_ANSWER
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(address)
        client.settimeout(20)
        client.sendall(request)
        time.sleep(4.5)
        answer = read(client)
    announced = re.search(rb"content-length: (\d+)", answer)
    assert announced is not None
    assert int(announced[1]) > 4_000_000
    assert len(answer) < int(announced[1])
    assert refused(address, "slow_client") == 1


def test_overload_is_rejected_by_the_connection(start_server: StartServer) -> None:
    # The connection sends the same response as the application and stays usable.
    flags = ("--threads=1", "--max-waiting-tokens=32")
    long, short = {"inputs": "the " * 25 + "[MASK]"}, {"inputs": "a [MASK] of the dog"}
    with (
        start_server(*flags, command=("-c", SLOW)) as (process, url),
        ThreadPoolExecutor() as pool,
        httpx.Client() as client,
    ):
        assert client.post(f"{url}/fill-mask", json=short).is_success
        assert process.stdout is not None
        while process.stdout.readline() != "running\n":
            pass
        running = pool.submit(httpx.post, f"{url}/fill-mask", json=long)
        process.stdout.readline()
        address = client.post(f"{url}/", json=short).extensions["network_stream"]
        for path in ("/fill-mask", "/", "/models/tiny"):
            answer = client.post(f"{url}{path}", json=short, headers={"X-Request-ID": "mine"})
            assert answer.status_code == 429
            seconds = answer.headers["retry-after"]
            assert 1 <= int(seconds) <= 30
            sentence = f"The service is overloaded; try again in {seconds} s."
            assert answer.json() == {"error": sentence}
            assert answer.headers["x-request-id"] == "mine"
            assert answer.headers["content-type"] == "application/json"
            assert "date" in answer.headers
            stream = answer.extensions["network_stream"]
            assert stream.get_extra_info("client_addr") == address.get_extra_info("client_addr")
        assert client.get(f"{url}/info").is_success
        last = httpx.post(f"{url}/fill-mask", json=short, headers={"Connection": "close"})
        assert last.status_code == 429
        assert last.headers["connection"] == "close"
        assert running.result().is_success
        found = samples(client.get(f"{url}/metrics").text)
        counted = 0.0
        for route in ("/fill-mask", "/", "/models/{name}"):
            labels = {"method": "POST", "route": route, "status": "429"}
            counted += value(found, "fillmask_requests_total", **labels)
        assert counted == 5
        reasons = [
            value(found, "fillmask_rejected_total", reason=reason, model="tiny")
            for reason in ("queue_full", "wait_too_long")
        ]
        assert sum(reasons) == 5
        assert client.post(f"{url}/fill-mask", json=short).is_success


def test_line_ends_do_not_extend_keep_alive(start_server: StartServer) -> None:
    # Line ends between requests do not count as a request.
    hasty = "import fillmask.serve\nfillmask.serve.KEEP_ALIVE_S = 1\n" + HASTY
    with start_server(command=("-c", hasty)) as (_, url):
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            sent_s = time.monotonic()
            client.sendall(REQUEST)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
            client.sendall(b"\r\n")
            assert client.recv(4096) == b""
            assert 1 < time.monotonic() - sent_s < 8


def test_rejected_request_gets_one_response(address: tuple[str, int]) -> None:
    # If the Content-Length is too large, the client gets one error even if no body arrives.
    answer = exchange(address, HEAD + b"Content-Length: 99999999\r\n\r\n", b"x" * 1000)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_half_closed_clients_get_their_response(start_server: StartServer) -> None:
    # The service sends interim responses to find out if a half-closed client still reads.
    with start_server("--threads=1", command=("-c", SLOW)) as (_, url):
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(REQUEST)
            client.shutdown(socket.SHUT_WR)
            *interim, last = read(client).split(b"HTTP/1.1 ")[1:]
        assert last.startswith(b"200 OK\r\n")
        assert {answer.strip() for answer in interim} == {b"100 Continue"}


def test_unread_responses_are_limited_over_all_connections(start_server: StartServer) -> None:
    # The service aborts connections that make no progress, the slowest first.
    few = (
        "import sys\nfrom fillmask.http import unsent_responses\n"
        "unsent_responses.MAX_UNSENT_BYTES = 9_000_000\n"
        "from fillmask.__main__ import main\nsys.exit(main())"
    )
    with start_server(command=("-c", few)) as (_, url):
        host, _, port = url.removeprefix("http://").partition(":")
        head = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(LONG_ANSWER)
        with contextlib.ExitStack() as opened:
            clients = [opened.enter_context(socket.socket()) for _ in range(4)]
            for client in clients:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                client.settimeout(20)
                client.connect((host, int(port)))
                client.sendall(head + LONG_ANSWER)
                assert client.recv(15) == b"HTTP/1.1 200 OK"
            lengths = [len(read(client)) for client in clients]
        # two responses of 4.1 MB fit
        assert [length > 4_000_000 for length in lengths] == [False, False, True, True]
        assert refused((host, int(port)), "slow_client") == 2


def test_idle_connection_is_closed_after_a_rejection(start_server: StartServer) -> None:
    # The keep-alive timeout applies after a rejection too.
    hasty = "import fillmask.serve\nfillmask.serve.KEEP_ALIVE_S = 1\n" + SLOW
    flags = ("--threads=1", "--max-waiting-tokens=32")
    with (
        start_server(*flags, command=("-c", hasty)) as (process, url),
        ThreadPoolExecutor() as pool,
    ):
        body = {"inputs": "the " * 29 + "[MASK]"}  # and two special tokens
        running = pool.submit(httpx.post, f"{url}/fill-mask", json=body, timeout=20)
        assert process.stdout is not None
        while "running" not in process.stdout.readline():
            pass
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(REQUEST)
            answer = client.recv(4096)
            refused_s = time.monotonic()
            assert answer.startswith(b"HTTP/1.1 429 ")
            assert b"connection: close" not in answer
            assert client.recv(4096) == b""
            assert 1 < time.monotonic() - refused_s < 10
        assert running.result().is_success
