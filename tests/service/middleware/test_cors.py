"""CORS requests of pages from allowed origins and from other origins."""

from fastapi.testclient import TestClient

from tests.service.serving import serving
from tests.service.tiny import Tiny

ALLOWED, OTHER = "https://app.example.com", "https://evil.example.com"
BODY = {"inputs": "the [MASK]"}


def preflight(client: TestClient, origin: str) -> dict[str, str]:
    """Return the CORS headers of the response to a browser's preflight request."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,authorization,traceparent,tracestate",
    }
    answer = client.options("/fill-mask", headers=headers)
    return {name: v for name, v in answer.headers.items() if name.startswith("access-control-")}


def test_no_origin_is_allowed_by_default(client: TestClient) -> None:
    # Without a CORS header, browsers let no page of another origin read a response.
    assert preflight(client, ALLOWED) == {}
    answer = client.post("/fill-mask", json=BODY, headers={"Origin": ALLOWED})
    assert "access-control-allow-origin" not in answer.headers


def test_only_listed_origins_are_allowed(tiny: Tiny) -> None:
    # Pages of listed origins can read error responses too.
    origins = f"http://localhost:3000, {ALLOWED}"
    with serving(tiny.path, cors_origins=origins) as client:
        allowed = preflight(client, ALLOWED)
        assert allowed["access-control-allow-origin"] == ALLOWED
        assert "POST" in allowed["access-control-allow-methods"]
        for header in ("Authorization", "X-Request-Timeout-Ms", "traceparent", "tracestate"):
            assert header in allowed["access-control-allow-headers"]
        assert "access-control-allow-origin" not in preflight(client, OTHER)
        for body, status in ((BODY, 200), ({}, 422)):
            answer = client.post("/fill-mask", json=body, headers={"Origin": ALLOWED})
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == ALLOWED
            exposed = "X-Request-ID, Retry-After, Server-Timing, X-Warnings"
            assert answer.headers["access-control-expose-headers"] == exposed
        answer = client.post("/fill-mask", json=BODY, headers={"Origin": OTHER})
        assert "access-control-allow-origin" not in answer.headers
