"""Responses to HEAD, which equal responses to GET without the body (RFC 9110, section 9.3.2)."""

import http.client
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.service.tiny import Tiny

PATHS = [
    *("/", "/playground/editor.js", "/docs", "/docs-assets/swagger-ui.css", "/openapi.json"),
    *("/health/live", "/health/ready", "/info", "/models", "/models/tiny", "/metrics"),
    *("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models"),
    *("/v2/models/tiny", "/v2/models/tiny/ready"),
    *("/v2/models/tiny/versions/1", "/v2/models/tiny/versions/1/ready"),
    *("/v1/models", "/v1/models/tiny", "/nothing", "/models/nothing"),
]
# headers that differ between responses
CHANGING = {"date", "server-timing", "x-request-id"}


@pytest.fixture(scope="module")
def client(tiny: Tiny) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(bundle=tiny.path))) as opened:
        yield opened


@pytest.mark.parametrize("path", PATHS)
def test_head_is_get_without_the_body(client: TestClient, path: str) -> None:
    # Status and headers equal those of GET, even for errors.
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert got.status_code == (404 if "nothing" in path else 200)
    changing = CHANGING | ({"content-length"} if path == "/metrics" else set())
    assert {k: v for k, v in head.headers.items() if k not in changing} == {
        k: v for k, v in got.headers.items() if k not in changing
    }


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("HEAD", "/fill-mask", "POST"),
        ("DELETE", "/fill-mask", "POST"),
        ("DELETE", "/", "GET, HEAD, POST"),
        ("DELETE", "/models/tiny", "GET, HEAD, POST"),
        ("POST", "/docs", "GET, HEAD"),
        ("OPTIONS", "/metrics", "GET, HEAD"),
        ("POST", "/playground/editor.js", "GET, HEAD"),
        ("POST", "/docs-assets/swagger-ui.css", "GET, HEAD"),
        ("POST", "/openapi.json", "GET, HEAD"),
    ],
)
def test_allow_has_head_where_it_has_get(
    client: TestClient, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        sentence = f"The method {method} is not allowed for this path; use {allowed}."
        assert answer.json() == {"error": sentence}


def test_head_is_counted_as_head(client: TestClient) -> None:
    # The counted route is that of GET.
    client.head("/health/live")
    line = 'fillmask_requests_total{method="HEAD",route="/health/live",status="200"}'
    assert line in client.get("/metrics").text


@pytest.mark.processes
def test_connection_stays_usable_after_head(tiny_url: str) -> None:
    # A real server sends Content-Length and no byte of the body.
    connection = http.client.HTTPConnection(tiny_url.removeprefix("http://"), timeout=20)
    for _ in range(2):
        connection.request("HEAD", "/openapi.json")
        head = connection.getresponse()
        assert head.read() == b""
        connection.request("GET", "/openapi.json")
        got = connection.getresponse()
        assert head.headers["Content-Length"] == str(len(got.read()))
    connection.close()
