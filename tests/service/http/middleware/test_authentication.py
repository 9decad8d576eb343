"""API keys and their rotation without a restart."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.errors import SettingsError
from fillmask.http.middleware import authentication
from fillmask.http.middleware.authentication import ApiKeys
from fillmask.settings import Settings
from tests.service.tiny import Tiny

KEYS = ["a-key-of-our-shop-4711", "another key, with blanks", "schlüssel-mit-umlaut"]
BODY = {"inputs": "the [MASK]"}
REFUSED = {"error": "The request has no valid API key; send a key as Authorization: Bearer KEY."}
OPEN = ["/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready", "/docs"]
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


@pytest.mark.parametrize("path", ["/fill-mask", "/", "/models/tiny", "/score"])
def test_requests_need_a_valid_key(path: str, client: TestClient) -> None:
    # The error has the usual shape and explains how to send a key.
    body = {"inputs": "the dog"} if path == "/score" else BODY
    for key in KEYS[:2]:
        assert client.post(path, json=body, headers=bearer(key)).is_success
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


def test_the_scheme_is_not_case_sensitive(client: TestClient) -> None:
    # RFC 9110, section 11.1, defines the scheme's name as case-insensitive.
    headers = {"Authorization": f"bearer  {KEYS[0]}"}
    assert client.post("/fill-mask", json=BODY, headers=headers).is_success


def test_public_paths_need_no_key(client: TestClient) -> None:
    # All other paths need a key, even if they do not exist.
    for path in OPEN:
        assert client.get(path).is_success, path
    for path in CLOSED:
        assert client.get(path).status_code == 401, path


def test_without_a_file_no_key_is_needed(tiny: Tiny) -> None:
    # Clients of Hugging Face always send tokens, which the service ignores.
    with TestClient(create_app(Settings(bundle=tiny.path, threads=1))) as client:
        assert client.post("/fill-mask", json=BODY, headers=bearer("hf_whatever")).is_success


def test_keys_are_rotated(client: TestClient, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "CHECK_INTERVAL_S", 0)
    new = file.with_name("new")
    new.write_text("a-key-that-is-quite-new\n")
    new.replace(file)
    answer = client.post("/fill-mask", json=BODY, headers=bearer("a-key-that-is-quite-new"))
    assert answer.is_success
    assert client.post("/fill-mask", json=BODY, headers=bearer(KEYS[0])).status_code == 401


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_text("short\n"),
        lambda file: file.write_bytes(b"\xff" * 32),
    ],
    ids=["short", "not text"],
)
def test_invalid_file_keeps_the_previous_keys(
    spoil: Callable[[Path], object],
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # The log has the reason for the rejection of the file and never a key.
    keys = ApiKeys(file)
    monkeypatch.setattr(authentication, "CHECK_INTERVAL_S", 0)
    spoil(file)
    with caplog.at_level(logging.ERROR):
        assert keys.is_valid(KEYS[0].encode())
        assert not keys.is_valid(b"short")
        assert not keys.is_valid(b"")
    assert "the previous API keys stay valid" in caplog.text
    with pytest.raises(SettingsError):
        ApiKeys(file)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda file: file.unlink(), "does not exist; create it"),
        (lambda file: file.write_text(""), "has no key; write one key per line"),
        (lambda file: file.write_text("# nobody\n"), "has no key; write one key per line"),
    ],
    ids=["gone", "empty", "only a comment"],
)
def test_file_without_a_key_invalidates_all_keys(
    spoil: Callable[[Path], object],
    reason: str,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # The log has one message per invalid file. A later file may add keys again.
    keys = ApiKeys(file)
    monkeypatch.setattr(authentication, "CHECK_INTERVAL_S", 0)
    spoil(file)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert not keys.is_valid(KEYS[0].encode())
            assert not keys.is_valid(b"")
    [record] = caplog.records
    assert record.getMessage().startswith(f"all API keys are invalid. The api_keys_file {file} ")
    assert reason in record.getMessage()
    with pytest.raises(SettingsError, match=reason):
        ApiKeys(file)
    file.write_text(f"{KEYS[1]}\n")
    assert keys.is_valid(KEYS[1].encode())
    assert not keys.is_valid(KEYS[0].encode())


def test_byte_order_mark_is_not_part_of_a_key(file: Path) -> None:
    # Windows editors write a byte order mark at the start of a file.
    file.write_text(f"{KEYS[2]}\n", encoding="utf-8-sig")
    assert ApiKeys(file).is_valid(KEYS[2].encode())


def test_only_hashes_of_keys_are_stored(file: Path) -> None:
    assert not any(key in repr(vars(ApiKeys(file))) for key in KEYS)
