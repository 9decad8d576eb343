"""API keys, and the ASGI middleware that asks for one."""

import hashlib
import hmac
import logging
import time
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import SettingsError
from service.http.responses import send_error_message

MIN_KEY_CHARS = 16
CHECK_INTERVAL_S = 1.0

_log = logging.getLogger(__name__)


class _NoKeyError(SettingsError):
    """No file, or no key in it."""


class ApiKeys:
    """Keys of a file, one a line; empty lines and those that begin with # are none.

    Only their SHA-256 is kept. The file is looked at once a second at most, so that keys are
    rotated without a restart. Without the file, or with one that has no key, no key is good until
    there is one again; if the file cannot be read or has an invalid line, the keys stay as they
    were.

    Args:
        path: of the file.

    Raises:
        SettingsError: it cannot be read, has no key, or a key that is too short.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digests: tuple[bytes, ...] = ()
        self._read_version: tuple[int, ...] = ()
        self._checked_s = time.monotonic()
        self._read()

    def is_valid(self, key: bytes) -> bool:
        """Whether it is one of the keys; takes the same time for any that is not."""
        now_s = time.monotonic()
        if now_s - self._checked_s >= CHECK_INTERVAL_S:
            self._checked_s = now_s
            self._read_if_changed()
        digest = hashlib.sha256(key).digest()
        valid = False
        for known in self._digests:
            valid |= hmac.compare_digest(digest, known)
        return valid

    def _read_if_changed(self) -> None:
        if self._file_version() == self._read_version:
            return
        try:
            self._read()
            _log.info("the API keys have been read again: %d", len(self._digests))
        except _NoKeyError as error:
            self._digests = ()
            _log.error("no API key is good until there is one again: %s", error)
        except SettingsError as error:
            _log.error("the API keys stay as they were: %s", error)

    def _read(self) -> None:
        self._read_version = self._file_version()
        try:
            # editors of Windows put a byte order mark before the first key
            lines = self._path.read_text(encoding="utf-8-sig").splitlines()
        except FileNotFoundError as error:
            raise _NoKeyError(f"api_keys_file does not exist: {self._path}.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"api_keys_file cannot be read: {self._path}.") from error
        digests = []
        for number, line in enumerate(lines, start=1):
            key = line.strip()
            if not key or key.startswith("#"):
                continue
            if len(key) < MIN_KEY_CHARS:
                raise SettingsError(
                    f"api_keys_file has a key of {len(key)} characters in line {number}; allowed "
                    f"are at least {MIN_KEY_CHARS}."
                )
            digests.append(hashlib.sha256(key.encode()).digest())
        if not digests:
            raise _NoKeyError(f"api_keys_file has no key: {self._path}.")
        self._digests = tuple(digests)

    def _file_version(self) -> tuple[int, ...]:
        """What differs when the file does; Kubernetes puts another one in its place."""
        try:
            stat = self._path.stat()
        except OSError:  # reading it tells why
            return ()
        return stat.st_ino, stat.st_mtime_ns, stat.st_size


# what probes, scrapers and people who have not got a key yet may see
_PUBLIC_PATHS = frozenset(
    {
        "/health/live",
        "/health/ready",
        "/v2/health/live",
        "/v2/health/ready",
        "/metrics",
        "/docs",
        "/openapi.json",
    }
)
_PUBLIC_PREFIXES = ("/docs-assets/", "/playground/")
_SCHEME = b"bearer "


class AuthenticationMiddleware:
    """Answers 401 to a request without one of the keys, before its body is read.

    Args:
        app: the application.
        keys: those that are good.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if (
            scope["type"] != "http"
            or _is_public(scope)
            or self._keys.is_valid(_bearer_token(scope))
        ):
            await self._app(scope, receive, send)
            return
        error_message = "An API key is needed: send it as Authorization: Bearer KEY."
        await send_error_message(send, 401, error_message, [(b"www-authenticate", b"Bearer")])


def _is_public(scope: Scope) -> bool:
    path: str = scope["path"]
    if path == "/":  # the page is; the same path answers clients of Hugging Face
        return scope["method"] in {"GET", "HEAD"}
    return path in _PUBLIC_PATHS or path.startswith(_PUBLIC_PREFIXES)


def _bearer_token(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[: len(_SCHEME)].lower() == _SCHEME:
            return bytes(value[len(_SCHEME) :].strip())
    return b""
