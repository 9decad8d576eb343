"""Responses to HEAD, which equal responses to GET without the body (RFC 9110, section 9.3.2)."""

import pytest
from fastapi.testclient import TestClient

from tests.service.responses import check_refusal

PATHS = [
    *("/", "/playground/editor.js", "/docs", "/openapi.json"),
    *("/health/ready", "/info", "/models/tiny", "/metrics"),
    *("/v2/models/tiny", "/v1/models", "/nothing", "/models/nothing"),
]
# headers that differ between responses
CHANGING = {"date", "server-timing", "x-request-id"}


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
        ("GET", "/fill-mask", "POST"),
        ("DELETE", "/info", "GET, HEAD"),
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
        check_refusal(
            answer, 405, f"The method {method} is not allowed for this path; use {allowed}."
        )
