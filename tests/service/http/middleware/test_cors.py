"""Pages of other origins: none may ask unless it is on the list."""

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.errors import SettingsError
from service.settings import Settings, read_settings
from tests.service.tiny import Tiny

ALLOWED, OTHER = "https://app.example.com", "https://evil.example.com"
BODY = {"inputs": "the [MASK]"}


def preflight(client: TestClient, origin: str) -> dict[str, str]:
    """The CORS headers of what a browser asks before it posts JSON."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,authorization",
    }
    answer = client.options("/fill-mask", headers=headers)
    return {name: v for name, v in answer.headers.items() if name.startswith("access-control-")}


def test_nobody_by_default(tiny: Tiny) -> None:
    """No header that would let a page read an answer."""
    with TestClient(create_app(Settings(bundle=tiny.path, threads=1))) as client:
        assert preflight(client, ALLOWED) == {}
        answer = client.post("/fill-mask", json=BODY, headers={"Origin": ALLOWED})
        assert "access-control-allow-origin" not in answer.headers


def test_who_is_on_the_list(tiny: Tiny) -> None:
    """And nobody else; on errors too, which a page must be able to read."""
    origins = f"http://localhost:3000, {ALLOWED}"
    settings = Settings(bundle=tiny.path, threads=1, cors_origins=origins)
    with TestClient(create_app(settings)) as client:
        allowed = preflight(client, ALLOWED)
        assert allowed["access-control-allow-origin"] == ALLOWED
        assert "POST" in allowed["access-control-allow-methods"]
        assert "access-control-allow-origin" not in preflight(client, OTHER)
        for body, status in ((BODY, 200), ({}, 422)):
            for path in ("/fill-mask", "/score"):
                answer = client.post(path, json=body, headers={"Origin": ALLOWED})
                assert answer.status_code == (422 if path == "/score" else status)
                assert answer.headers["access-control-allow-origin"] == ALLOWED
                assert "X-Request-ID" in answer.headers["access-control-expose-headers"]
        answer = client.post("/fill-mask", json=BODY, headers={"Origin": OTHER})
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"Origin": OTHER}, "Disallowed CORS origin"),
        ({"Access-Control-Request-Method": "DELETE"}, "Disallowed CORS method"),
        ({"Access-Control-Request-Headers": "x-other"}, "Disallowed CORS headers"),
    ],
)
def test_a_rejected_preflight_is_an_error_like_others(
    changed: dict[str, str], reason: str, tiny: Tiny
) -> None:
    """JSON, with what is allowed."""
    settings = Settings(bundle=tiny.path, threads=1, cors_origins=ALLOWED)
    headers = {"Origin": ALLOWED, "Access-Control-Request-Method": "POST"} | changed
    with TestClient(create_app(settings)) as client:
        answer = client.options("/fill-mask", headers=headers)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    assert "Origin" in answer.headers["vary"]
    assert answer.json()["error"].startswith(f"{reason}; allowed are the origins of the service's ")


def test_a_page_may_send_its_trace(tiny: Tiny) -> None:
    """The headers of W3C Trace Context, which the service reads."""
    settings = Settings(bundle=tiny.path, threads=1, cors_origins=ALLOWED)
    headers = {
        "Origin": ALLOWED,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,traceparent,tracestate",
    }
    with TestClient(create_app(settings)) as client:
        assert client.options("/fill-mask", headers=headers).status_code == 200


@pytest.mark.parametrize("value", ["app.example.com", "https://a.example/", "https://a;b c", "*,x"])
def test_what_is_no_list_of_origins(value: str) -> None:
    """Is told at the start."""
    with pytest.raises(SettingsError, match=r"--cors-origins must be a list such as"):
        read_settings(["--cors-origins", value])
