"""Requests through a real nginx with the committed configuration."""

import contextlib
import http.client
import json
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.chaos.process import free_port
from tests.deploy import proxy
from tests.docs.local_service import serving

pytestmark = pytest.mark.processes

TEXT = {"inputs": "Paris is the [MASK] of France."}
JSON = {"Content-Type": "application/json"}
Start = Callable[..., proxy.Proxy]


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def error(self) -> str:
        assert self.headers["content-type"] == "application/json"
        content = json.loads(self.content)
        assert content.keys() == {"error"}
        return str(content["error"])


def ask(
    port: int,
    method: str = "GET",
    path: str = "/",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, 30)) as connection:
        connection.request(method, path, body, headers or {})
        return read(connection)


def read(connection: http.client.HTTPConnection) -> Answer:
    response = connection.getresponse()
    return Answer(response.status, response.headers, response.read())


def send(port: int, data: bytes) -> Answer:
    """Send bytes and return the response."""
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(data)
        response = http.client.HTTPResponse(client)
        response.begin()
        return Answer(response.status, response.headers, response.read())


def seconds_until_close(client: socket.socket) -> float:
    """Return after how many seconds the server closes a connection without a response."""
    start_s = time.monotonic()
    client.settimeout(30)
    with contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""
    return time.monotonic() - start_s


@pytest.fixture
def upstream() -> Iterator[proxy.Upstream]:
    with proxy.recording() as server:
        yield server


@pytest.fixture
def start(tmp_path: Path, upstream: proxy.Upstream) -> Iterator[Start]:
    """Function that starts nginx with changed limits, in front of the recording server."""
    with contextlib.ExitStack() as stack:

        def start_nginx(changes: Mapping[str, str] | None = None, *ports: int) -> proxy.Proxy:
            upstreams = ports or (upstream.port,)
            running = proxy.running(tmp_path, *upstreams, changes=changes)
            return stack.enter_context(running)

        yield start_nginx


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Port of nginx in front of the service."""
    with serving() as host:
        port = int(host.rpartition(":")[2])
        with proxy.running(tmp_path_factory.mktemp("proxy"), port) as running:
            yield running.port


def test_configuration_is_valid(tmp_path: Path) -> None:
    for trusted in (False, True):
        if trusted:
            (tmp_path / proxy.TRUSTED.name).write_text(proxy.TRUSTED.read_text())
        file = proxy.write_configuration(tmp_path, [8000], {}, (free_port(), free_port()))
        done = subprocess.run(
            [*proxy.command(), "-t", "-c", file], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "warn" not in done.stderr


def test_fill_and_errors_of_the_service_pass_unchanged(service: int) -> None:
    headers = {**JSON, "X-Request-ID": "mine-1"}
    filled = ask(service, "POST", "/fill-mask", json.dumps(TEXT).encode(), headers)
    assert filled.status == 200
    assert json.loads(filled.content)[0]["token_str"] == "capital"  # noqa: S105 - a word of the model
    assert filled.headers.get_all("x-request-id") == ["mine-1"]
    wrong = ask(service, "POST", "/fill-mask", b'{"inputs": "no mask"}', JSON)
    assert wrong.status == 422
    assert "has no mask" in wrong.error
    assert ask(service, path="/health/ready").status == 200


def test_body_in_chunks_of_one_byte_is_filled(service: int) -> None:
    body = json.dumps(TEXT).encode()
    head = (
        b"POST /fill-mask HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    assert send(service, head + in_chunks(body)).status == 200


def in_chunks(body: bytes) -> bytes:
    return b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"


def test_body_in_chunks_reaches_the_service_as_one(start: Start, upstream: proxy.Upstream) -> None:
    port = start().port
    body = bytes(range(256)) * 200  # longer than nginx's buffer in memory
    head = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        data = head + in_chunks(body)
        client.sendall(data[:-7])
        time.sleep(0.3)
        assert not upstream.seen  # nothing arrives before the end of the body
        client.sendall(data[-7:])
        assert client.recv(12) == b"HTTP/1.1 200"
    (seen,) = upstream.seen
    assert seen.body == body
    assert seen.headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in seen.headers


def test_connections_to_the_service_are_kept(start: Start, upstream: proxy.Upstream) -> None:
    port = start().port
    for _ in range(20):
        assert ask(port).status == 200
    assert len({seen.connection for seen in upstream.seen}) == 1
    assert {seen.line for seen in upstream.seen} == {"GET / HTTP/1.1"}
    assert {seen.headers["host"] for seen in upstream.seen} == {f"127.0.0.1:{port}"}


@pytest.mark.parametrize(
    ("data", "host"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", "fillmask"),
        (b"POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx", "fillmask"),
        (b"GET / HTTP/1.0\r\nHost: a:80\r\n\r\n", "a:80"),
        (b"GET http://b/ HTTP/1.0\r\n\r\n", "b"),
        (b"GET / HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n", "[::1]:80"),
    ],
)
def test_every_request_to_the_service_has_a_host(
    start: Start, upstream: proxy.Upstream, data: bytes, host: str
) -> None:
    # The service refuses HTTP/1.1 without one. HTTP/1.0 is the version of old load balancers.
    assert send(start().port, data).status == 200
    assert upstream.seen[0].headers["host"] == host


def request_id(headers: Message) -> str:
    """Return the only request id of a message."""
    (found,) = headers.get_all("x-request-id", [])
    return str(found)


@pytest.mark.parametrize("sent", ["a.b_c-9", "x" * 64])
def test_request_id_is_kept(start: Start, upstream: proxy.Upstream, sent: str) -> None:
    port = start().port
    ask(port, headers={"X-Request-ID": sent})
    assert request_id(upstream.seen[0].headers) == sent
    assert request_id(ask(port, path="/metrics", headers={"X-Request-ID": sent}).headers) == sent


@pytest.mark.parametrize("sent", ["x" * 65, "a b", None])
def test_request_id_is_created_without_a_valid_one(
    start: Start, upstream: proxy.Upstream, sent: str | None
) -> None:
    headers = {} if sent is None else {"X-Request-ID": sent}
    port = start().port
    ask(port, headers=headers)
    created = [
        request_id(upstream.seen[0].headers),
        request_id(ask(port, path="/metrics", headers=headers).headers),
    ]
    assert len(set(created)) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in created)


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/metrics?a",
        "/metrics/",
        "//metrics",
        "/./metrics",
        "/a/../metrics",
        "/%6Detrics",
    ],
)
def test_metrics_are_not_served(start: Start, upstream: proxy.Upstream, path: str) -> None:
    answer = ask(start().port, path=path)
    assert answer.status == 404
    assert "does not serve this path" in answer.error
    assert not upstream.seen


def test_proxy_is_live_without_the_service(start: Start) -> None:
    running = start({}, free_port())
    assert ask(running.live_port, path="/live").status == 200
    assert ask(running.live_port, path="/metrics").status == 404


LARGE = 2**20 + 1
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % LARGE


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"NOT HTTP\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % LARGE, 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\n" + CHUNKED + b"x" * LARGE, 413),
        (b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * 9000), 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: %s\r\n\r\n" % (b"x" * 9000), 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
    ],
)
def test_errors_of_the_proxy_are_json(
    start: Start, upstream: proxy.Upstream, data: bytes, status: int
) -> None:
    answer = send(start().port, data)
    assert answer.status == status
    assert answer.error.endswith(".")
    assert answer.headers["x-request-id"]
    assert not upstream.seen


def test_body_at_the_limit_passes(start: Start, upstream: proxy.Upstream) -> None:
    assert ask(start().port, "POST", "/", b"x" * 2**20).status == 200
    assert len(upstream.seen[0].body) == 2**20


def test_service_that_is_away_or_silent_or_full(start: Start, upstream: proxy.Upstream) -> None:
    running = start({"proxy_read_timeout 605s": "proxy_read_timeout 1s"})
    for path, status, retry_after in (
        ("/drop", 502, "1"),
        ("/wait", 504, "1"),
        ("/full", 503, "7"),
    ):
        answer = ask(running.port, "POST", path, b"x")
        assert (answer.status, answer.headers["retry-after"]) == (status, retry_after), path
        assert answer.error
    upstream.released.set()


def test_requests_in_parallel_are_limited_per_client_and_in_all(
    start: Start, upstream: proxy.Upstream
) -> None:
    for change in (
        {"requests_of_client 128": "requests_of_client 3"},
        {"requests_of_all 512": "requests_of_all 3"},
    ):
        upstream.released.clear()
        upstream.seen.clear()
        port = start(change).port
        with ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(ask, port, "GET", "/wait") for _ in range(3)]
            while len(upstream.seen) < 3:
                time.sleep(0.01)
            answer = ask(port)
            upstream.released.set()
            assert [each.result().status for each in waiting] == [200] * 3
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        assert answer.error
        assert ask(port).status == 200


def test_rate_is_limited_per_client(start: Start, tmp_path: Path) -> None:
    # Behind a gateway, a client is an address in X-Forwarded-For.
    trusted = proxy.TRUSTED.read_text() + "set_real_ip_from 127.0.0.0/8;"
    slow = {"rate=500r/s": "rate=1r/m", "burst=500 nodelay": "burst=2 nodelay"}
    first, second = ({"X-Forwarded-For": f"203.0.113.{n}, 10.0.0.1"} for n in (1, 2))
    alone = start(slow).port
    statuses = [ask(alone, headers=headers).status for headers in (first, second, first, second)]
    assert statuses == [200, 200, 200, 429]
    (tmp_path / proxy.TRUSTED.name).write_text(trusted)
    behind = start(slow).port
    statuses = [ask(behind, headers=headers).status for headers in (*[first] * 4, second)]
    assert statuses == [200, 200, 200, 429, 200]


def test_slow_heads_and_idle_connections_are_closed(start: Start) -> None:
    port = start(
        {
            "client_header_timeout 10s": "client_header_timeout 1s",
            "keepalive_timeout 60s": "keepalive_timeout 1s",
        }
    ).port
    with socket.create_connection(("127.0.0.1", port)) as silent:
        assert 0.5 < seconds_until_close(silent) < 5
    with socket.create_connection(("127.0.0.1", port)) as slow:
        start_s = time.monotonic()
        with contextlib.suppress(ConnectionError):
            for byte in b"GET / HTTP/1.1\r\nHost: " + b"a" * 100:
                slow.sendall(bytes([byte]))
                time.sleep(0.1)
        assert 0.5 < time.monotonic() - start_s < 5
    with socket.create_connection(("127.0.0.1", port)) as used:
        used.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        received = b""
        while not received.endswith(b"{}"):
            received += used.recv(1000)
        assert b"keep-alive" in received
        assert 0.5 < seconds_until_close(used) < 5


def test_connection_is_closed_at_a_long_pause_in_a_body(
    start: Start, upstream: proxy.Upstream
) -> None:
    port = start({"client_body_timeout 10s": "client_body_timeout 1s"}).port
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx")
        assert 0.5 < seconds_until_close(client) < 5
    assert not upstream.seen


def test_flood_of_connections_keeps_no_client_out(start: Start) -> None:
    port = start({"worker_connections 2048": "worker_connections 64"}).port
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert [ask(port).status for _ in range(5)] == [200] * 5


def test_requests_are_repeated_only_if_they_were_not_sent(
    tmp_path: Path, upstream: proxy.Upstream
) -> None:
    with proxy.recording() as other:
        for ports, path, status in (
            ((free_port(), other.port), "/", 200),
            ((upstream.port, other.port), "/drop", 502),
        ):
            with proxy.running(tmp_path, *ports) as running:
                upstream.seen.clear()
                other.seen.clear()
                answers = [ask(running.port, "POST", path, b"x").status for _ in range(4)]
                assert answers == [status] * 4
                assert len([*upstream.seen, *other.seen]) == 4


def test_log_has_failures_without_queries(start: Start) -> None:
    running = start({}, free_port())
    for method in ("POST", "GET", "HEAD"):
        ask(running.port, method, "/fill-mask?secret=1", headers={"X-Request-ID": "mine-2"})
    ask(running.port, path="/metrics?secret=1")
    assert "secret" not in running.log()
    entries = [json.loads(line) for line in running.log().splitlines()]
    assert [entry["method"] for entry in entries] == ["POST", "GET", "HEAD"]
    for entry in entries:
        found = entry["status"], entry["path"], entry["request_id"]
        assert found == (502, "/fill-mask", "mine-2")


@pytest.mark.parametrize("has_ipv6", [True, False])
def test_start_listens_on_ipv6_where_the_kernel_has_it(
    tmp_path: Path, upstream: proxy.Upstream, *, has_ipv6: bool
) -> None:
    if has_ipv6 and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    ports = free_port(), free_port()
    file = proxy.write_configuration(tmp_path, [upstream.port], {}, ports)
    script = proxy.START.read_text()
    for old, new in (
        ("> /tmp/", f"> {tmp_path}/"),
        ("/proc/net/if_inet6", str(file if has_ipv6 else tmp_path / "missing")),
        ("[::]:8080", f"[::1]:{ports[0]}"),
        ("[::]:8081", f"[::1]:{ports[1]}"),
        (
            "nginx -c /etc/nginx/fillmask/nginx.conf",
            shlex.join([*proxy.command(), "-c", str(file)]),
        ),
    ):
        assert old in script
        script = script.replace(old, new)
    with subprocess.Popen(["sh", "-c", script]) as process:
        try:
            proxy.await_listener(ports[0])
            for port in ports if has_ipv6 else ():
                socket.create_connection(("::1", port), 5).close()
        finally:
            process.terminate()
    assert process.returncode == 0
