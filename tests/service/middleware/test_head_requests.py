"""Responses to HEAD, which equal responses to GET without the body (RFC 9110, section 9.3.2)."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.service.tiny import Tiny

PATHS = [
    *("/", "/playground/editor.js", "/docs", "/openapi.json"),
    *("/health/ready", "/info", "/models/tiny", "/metrics"),
    *("/v2/models/tiny", "/v1/models", "/nothing", "/models/nothing"),
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
        ("OPTIONS", "/metrics", "GET, HEAD"),
        ("POST", "/docs-assets/swagger-ui.css", "GET, HEAD"),
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
