"""Requests with and without valid API keys, and the changes and defects of their file."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from fillmask.errors import SettingsError
from fillmask.middleware import authentication
from fillmask.middleware.authentication import ApiKeys
from tests.service.serving import serving
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
    with serving(tiny.path, api_keys_file=file) as test_client:
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


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_text("short\n"),
        lambda file: file.write_bytes(b"\xff" * 32),
        lambda file: os.truncate(file, 2**40),
    ],
    ids=["short", "not text", "1 TB of zeros"],
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


def test_byte_order_mark_is_not_part_of_a_key(file: Path) -> None:
    # Windows editors write a byte order mark first. Keys have 16 characters or more.
    file.write_text(f"{'k' * 16}\n", encoding="utf-8-sig")
    assert ApiKeys(file).is_valid(b"k" * 16)


def replace(put: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace_by(file: Path) -> None:
        file.unlink()
        put(file)

    return replace_by


WITHOUT_KEYS: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (Path.unlink, "does not exist; create it"),
    "only a comment": (
        lambda file: file.write_text("# nobody\n"),
        "has no key; write one key per ",
    ),
    "FIFO": (
        replace(os.mkfifo),
        "must be a regular file or a link to one (got a FIFO); replace it",
    ),
    "directory": (replace(Path.mkdir), "(got a directory)"),
    "device": (replace(lambda file: file.symlink_to("/dev/zero")), "(got a device)"),
    "loop of links": (replace(lambda file: file.symlink_to("keys")), "does not exist; create it"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="it has no FIFOs")
@pytest.mark.parametrize("case", WITHOUT_KEYS)
def test_file_without_a_key_invalidates_all_keys(
    case: str, file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Without waiting for a writer of a FIFO. The log has one message. A later file may have keys.
    put, reason = WITHOUT_KEYS[case]
    keys = ApiKeys(file)
    monkeypatch.setattr(authentication, "CHECK_INTERVAL_S", 0)
    put(file)
    with caplog.at_level(logging.ERROR):
        for number in range(3):
            assert not keys.is_valid(KEYS[0].encode())
            assert not keys.is_valid(b"")
            if case == "directory":
                (file / str(number)).touch()
    [record] = caplog.records
    assert record.getMessage().startswith(f"all API keys are invalid. The api_keys_file {file} ")
    assert reason in record.getMessage()
    with pytest.raises(SettingsError) as caught:
        ApiKeys(file)
    assert reason in str(caught.value)
    if case == "directory":
        file.rename(file.with_name("away"))
    file.with_name("new").write_text(f"{KEYS[1]}\n")
    file.with_name("new").replace(file)
    assert keys.is_valid(KEYS[1].encode())
    assert not keys.is_valid(KEYS[0].encode())


def test_changes_apply_within_a_second(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ApiKeys(file)
    read_s = time.monotonic()
    file.write_text(f"{KEYS[1]}\n")
    clock = SimpleNamespace(monotonic=lambda: read_s + 0.7)
    monkeypatch.setattr(authentication, "time", clock)
    assert not keys.is_valid(KEYS[0].encode())


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_lead_to_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kubernetes replaces a link to a directory of a volume.
    monkeypatch.setattr(authentication, "CHECK_INTERVAL_S", 0)
    for name, key in (("1", KEYS[0]), ("2", KEYS[1])):
        file.with_name(name).mkdir()
        (file.with_name(name) / "keys").write_text(f"{key}\n")
    data, mounted = file.with_name("data"), file.with_name("mounted")
    data.symlink_to("1")
    mounted.symlink_to("data/keys")
    keys = ApiKeys(mounted)
    assert keys.is_valid(KEYS[0].encode())
    file.with_name("tmp").symlink_to("2")
    file.with_name("tmp").replace(data)
    assert keys.is_valid(KEYS[1].encode())
    assert not keys.is_valid(KEYS[0].encode())
