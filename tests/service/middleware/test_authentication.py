"""Requests with and without valid API keys."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.service.tiny import Tiny

KEYS = ["a-key-of-our-shop-4711", "another key, with blanks", "schlüssel-mit-umlaut"]
BODY = {"inputs": "the [MASK]"}
REFUSED = {"error": "The request has no valid API key; send a key as Authorization: Bearer KEY."}
OPEN = ["/", "/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready", "/docs"]
CLOSED = ["/info", "/models", "/models/tiny", "/v2", "/v2/models/tiny", "/v1/models", "/nothing"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """File of API keys."""
    path = tmp_path / "keys"
    path.write_text(f"# shop\n{KEYS[0]}\n\n  {KEYS[1]}  \n{KEYS[2]}\n", encoding="utf-8")
    return path


@pytest.fixture
def client(tiny: Tiny, file: Path) -> Iterator[TestClient]:
    """Client of a service with API keys."""
    settings = Settings(bundle=tiny.path, threads=1, api_keys_file=file)
    with TestClient(create_app(settings)) as test_client:
        yield test_client


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize("path", ["/fill-mask", "/"])
def test_requests_need_a_valid_key(path: str, client: TestClient) -> None:
    # The error has the usual shape and explains how to send a key. RFC 9110, section 11.1: the
    # scheme's name has any case.
    for valid in (*map(bearer, KEYS[:2]), {"Authorization": f"bearer  {KEYS[0]}"}):
        assert client.post(path, json=BODY, headers=valid).is_success
    for headers in (
        {},
        bearer(""),
        bearer(KEYS[0][:-1]),
        bearer(KEYS[0] + "x"),
        bearer("# shop"),
        {"Authorization": KEYS[0]},
        {"Authorization": f"Basic {KEYS[0]}"},
    ):
        answer = client.post(path, content=b"x" * 10_000_000, headers=headers)
        assert answer.status_code == 401
        assert answer.json() == REFUSED
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.headers["x-request-id"]


def test_public_paths_need_no_key(client: TestClient) -> None:
    # All other paths need a key, even if they do not exist. Strangers pay for each request with a
    # new connection.
    for path in OPEN:
        assert client.get(path).is_success, path
        assert client.head(path).is_success, path
    for path in CLOSED:
        for answer in (client.get(path), client.head(path)):
            assert (answer.status_code, answer.headers["connection"]) == (401, "close"), path


def test_without_a_file_no_key_is_needed(tiny: Tiny) -> None:
    # Clients of Hugging Face always send tokens, which the service ignores.
    with TestClient(create_app(Settings(bundle=tiny.path, threads=1))) as client:
        assert client.post("/fill-mask", json=BODY, headers=bearer("hf_whatever")).is_success
