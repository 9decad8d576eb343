"""A real nginx with the committed configuration, and its numbers beside those of the service."""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from fillmask.middleware.cancellation import MAX_TIMEOUT_MS
from fillmask.settings import Settings
from tests.chaos.process import free_port
from tests.deploy import files, kustomize, proxy

pytestmark = pytest.mark.processes

COMPOSE = files.read_yaml(files.COMPOSE)["services"]
MOUNT = "/etc/nginx/fillmask"
START = proxy.COMPONENT / "start.sh"
LARGE = 2**20 + 1
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % LARGE
Start = Callable[..., int]


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def error(self) -> str:
        assert self.headers["content-type"] == "application/json"
        return str(json.loads(self.content)["error"])


def ask(
    port: int,
    method: str = "GET",
    path: str = "/",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, 30)) as connection:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())


def send(port: int, data: bytes) -> Answer:
    """Send bytes and return the response."""
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(data)
        response = http.client.HTTPResponse(client)
        response.begin()
        return Answer(response.status, response.headers, response.read())


def seconds_until_close(port: int, sent: bytes) -> tuple[bytes, float]:
    """Send bytes, and return the answer and how long the connection then stays."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(sent)
        start_s = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            while received := client.recv(1000):
                answer += received
                start_s = time.monotonic()
        return answer, time.monotonic() - start_s


@pytest.fixture(scope="module")
def server() -> Iterator[proxy.Upstream]:
    with proxy.recording() as upstream:
        yield upstream


@pytest.fixture
def upstream(server: proxy.Upstream) -> proxy.Upstream:
    """Recording server without requests of other tests."""
    server.seen.clear()
    server.released.clear()
    return server


@pytest.fixture(scope="module")
def port(server: proxy.Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Port of nginx as it is committed."""
    with proxy.running(tmp_path_factory.mktemp("proxy"), server.port) as running:
        yield running.port


@pytest.fixture
def start(tmp_path: Path, upstream: proxy.Upstream) -> Iterator[Start]:
    """Function that starts nginx with changed limits and returns its port."""
    with contextlib.ExitStack() as stack:

        def start_nginx(changes: Mapping[str, str], *ports: int) -> int:
            upstreams = ports or (upstream.port,)
            running = proxy.running(tmp_path, *upstreams, changes=changes)
            return stack.enter_context(running).port

        yield start_nginx


def test_body_in_chunks_reaches_the_service_as_one(port: int, upstream: proxy.Upstream) -> None:
    body = bytes(range(256)) * 200  # longer than nginx's buffer in memory
    head = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    data = head + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(data[:-7])
        time.sleep(0.3)
        assert not upstream.seen  # nothing arrives before the end of the body
        client.sendall(data[-7:])
        assert client.recv(12) == b"HTTP/1.1 200"
    (seen,) = upstream.seen
    assert (seen.body, seen.headers["content-length"]) == (body, str(len(body)))


def test_connections_to_the_service_are_kept(port: int, upstream: proxy.Upstream) -> None:
    assert [ask(port, headers={"X-Request-ID": "a.b_c-9"}).status for _ in range(20)] == [200] * 20
    assert len({seen.connection for seen in upstream.seen}) == 1
    assert {seen.line for seen in upstream.seen} == {"GET / HTTP/1.1"}
    assert {seen.headers["x-request-id"] for seen in upstream.seen} == {"a.b_c-9"}
    ask(port, headers={"X-Request-ID": "x" * 65})
    assert re.fullmatch("[0-9a-f]{32}", upstream.seen[-1].headers["x-request-id"])


@pytest.mark.parametrize(
    ("data", "host"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", "fillmask"),
        (b"POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx", "fillmask"),
        (b"GET http://b/ HTTP/1.0\r\n\r\n", "b"),
        (b"GET / HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n", "[::1]:80"),
    ],
)
def test_every_request_to_the_service_has_a_host(
    port: int, upstream: proxy.Upstream, data: bytes, host: str
) -> None:
    # The service refuses HTTP/1.1 without one. HTTP/1.0 is the version of old load balancers.
    assert send(port, data).status == 200
    assert upstream.seen[0].headers["host"] == host


@pytest.mark.parametrize("path", ["/metrics", "//metrics", "/a/../metrics", "/%6Detrics?a"])
def test_metrics_are_not_served(port: int, upstream: proxy.Upstream, path: str) -> None:
    assert "does not serve this path" in ask(port, path=path).error
    assert not upstream.seen


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"NOT HTTP\r\n\r\n", 400),
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
    port: int, upstream: proxy.Upstream, data: bytes, status: int
) -> None:
    answer = send(port, data)
    assert answer.status == status
    assert answer.error.endswith(".")
    assert answer.headers["x-request-id"]
    assert not upstream.seen


def test_service_that_is_away_or_silent_or_full(start: Start, upstream: proxy.Upstream) -> None:
    two = (upstream.port, upstream.port)
    port = start({"proxy_read_timeout 605s": "proxy_read_timeout 1s"}, *two)
    for path, status, retry_after in (
        ("/drop", 502, "1"),
        ("/wait", 504, "1"),
        ("/full", 503, "7"),
    ):
        answer = ask(port, "POST", path, b"x")
        assert (answer.status, answer.headers["retry-after"]) == (status, retry_after), path
        assert answer.error
    # a request is repeated only if it was not sent
    assert [seen.line.split()[1] for seen in upstream.seen] == ["/drop", "/wait", "/full"]
    upstream.released.set()
    port = start({}, free_port(), upstream.port)
    assert [ask(port, "POST", body=b"x").status for _ in range(4)] == [200] * 4


def test_failures_are_logged_without_queries(start: Start, tmp_path: Path) -> None:
    port = start({}, free_port())
    for path in ("/fill-mask?secret=1", "/metrics?secret=1"):
        ask(port, "POST", path, headers={"X-Request-ID": "mine-2"})
    [entry] = map(json.loads, (tmp_path / "access.log").read_text().splitlines())
    found = [entry[name] for name in ("method", "status", "path", "request_id")]
    assert found == ["POST", 502, "/fill-mask", "mine-2"]


@pytest.mark.parametrize("limit", ["requests_of_client 128", "requests_of_all 512"])
def test_requests_in_parallel_are_limited(
    start: Start, upstream: proxy.Upstream, limit: str
) -> None:
    port = start({limit: f"{limit.split(maxsplit=1)[0]} 3"})
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(ask, port, "GET", "/wait") for _ in range(3)]
        while len(upstream.seen) < 3:
            time.sleep(0.01)
        answer = ask(port)
        upstream.released.set()
        assert [each.result().status for each in waiting] == [200] * 3
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")


def test_rate_is_limited_per_client(start: Start, tmp_path: Path) -> None:
    # Behind a gateway, a client is an address in X-Forwarded-For.
    slow = {"rate=500r/s": "rate=1r/m", "burst=500 nodelay": "burst=2 nodelay"}
    first, second = ({"X-Forwarded-For": f"203.0.113.{n}, 10.0.0.1"} for n in (1, 2))
    alone = start(slow)
    statuses = [ask(alone, headers=headers).status for headers in (first, second, first, second)]
    assert statuses == [200, 200, 200, 429]
    trusted = proxy.TRUSTED.read_text() + "set_real_ip_from 127.0.0.0/8;"
    (tmp_path / proxy.TRUSTED.name).write_text(trusted)
    behind = start(slow)
    statuses = [ask(behind, headers=headers).status for headers in (*[first] * 4, second)]
    assert statuses == [200, 200, 200, 429, 200]


def test_slow_clients_and_idle_connections_are_closed(
    start: Start, upstream: proxy.Upstream
) -> None:
    times = ("client_header_timeout 10s", "client_body_timeout 10s", "keepalive_timeout 60s")
    port = start({text: f"{text.split()[0]} 1s" for text in times})
    head = b"POST / HTTP/1.1\r\nHost: a\r\n"
    slow = (b"", head, head + b"Content-Length: 9\r\n\r\nx")
    idle = head + b"Content-Length: 0\r\n\r\n"
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda sent: seconds_until_close(port, sent), (*slow, idle))
        *unanswered, (answer, _) = answers = list(found)
    assert [answer for answer, _ in unanswered] == [b""] * 3
    assert answer.endswith(b"}")
    assert all(0.5 < stayed_s < 5 for _, stayed_s in answers)
    assert len(upstream.seen) == 1


@pytest.mark.parametrize("has_ipv6", [True, False])
def test_start_listens_on_ipv6_where_the_kernel_has_it(tmp_path: Path, *, has_ipv6: bool) -> None:
    # the script runs with a directory in place of /tmp, and prints the command of nginx
    script = START.read_text().replace("> /tmp/", f"> {tmp_path}/").replace("exec nginx", "echo")
    kernel = START if has_ipv6 else tmp_path / "missing"
    script = script.replace("/proc/net/if_inet6", str(kernel))
    assert subprocess.check_output(["sh", "-c", script], text=True) == f"-c {MOUNT}/nginx.conf\n"
    written = "".join(sorted(path.read_text() for path in tmp_path.iterdir()))
    expected = "listen [::]:8080 backlog=1024;\nlisten [::]:8081;\n"
    assert written == (expected if has_ipv6 else "")
    included = re.findall(r"include /tmp/(ipv6\S+);", proxy.CONFIGURATION.read_text())
    assert included == ["ipv6-clients*.conf", "ipv6-live*.conf"]


def seconds(directive: str) -> int:
    return int(proxy.directive(directive).removesuffix("s"))


def test_limits_and_times_fit_those_of_the_service() -> None:
    assert proxy.directive("client_max_body_size") == "1m"
    assert Settings.model_fields["max_body_bytes"].default == 2**20
    assert seconds("proxy_read_timeout") > MAX_TIMEOUT_MS / 1000
    text = proxy.CONFIGURATION.read_text()
    of_clients, of_service = re.findall(r"\bkeepalive_timeout (\d+)s;", text)
    assert int(of_service) < 5 < int(of_clients)  # uvicorn closes idle connections after 5 s
    # Kubernetes evicts a pod whose volume is full, so that clients could end pods.
    (most,) = re.findall(r"limit_conn requests_of_all (\d+)", text)
    assert int(most) * 2**20 < 2**30
    assert COMPOSE["proxy"]["mem_limit"] == "1g"
    (pod,) = kustomize.pods(kustomize.rendered(kustomize.OVERLAYS / "production"))
    (size,) = (each["emptyDir"]["sizeLimit"] for each in pod["volumes"] if "emptyDir" in each)
    assert size == "1Gi"


def test_pod_and_compose_lead_clients_through_the_proxy() -> None:
    objects = kustomize.rendered(kustomize.OVERLAYS / "production")
    (pod,) = kustomize.pods(objects)
    assert pod["hostAliases"] == [{"ip": "127.0.0.1", "hostnames": ["fillmask"]}]
    (sidecar,) = pod["initContainers"]
    by_name = {port["name"]: port["containerPort"] for port in sidecar["ports"]}
    assert by_name == {"proxy": 8080, "proxy-live": 8081}
    targets = [port["targetPort"] for port in kustomize.one(objects, "Service")["spec"]["ports"]]
    assert sorted(targets, key=str) == [8080, "metrics"]
    data = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
    read = (*proxy.COMPONENT.glob("*.conf"), START)
    assert {path.name: path.read_text() for path in read} in data
    in_compose = COMPOSE["proxy"]
    assert sidecar["command"] == in_compose["entrypoint"] == ["sh", f"{MOUNT}/start.sh"]
    assert sidecar["image"] == in_compose["image"]
    # it quits while the service still accepts requests, and once every node knows the endpoints
    stop = sidecar["lifecycle"]["preStop"]["exec"]["command"][-1]
    (waited,) = map(int, re.findall(r"sleep (\d+) ", stop))
    assert f"nginx -c {MOUNT}/nginx.conf -s quit" in stop
    drain_s = files.settings_of(kustomize.settings(objects)).drain_delay_s
    assert 5 <= waited < drain_s - seconds("keepalive_min_timeout")
