"""API keys and the ASGI middleware that requires a valid key."""

import hashlib
import hmac
import logging
import time
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from fillmask.errors import SettingsError
from fillmask.http.send_json import send_error_message

MIN_KEY_CHARS = 16
CHECK_INTERVAL_S = 1.0

_log = logging.getLogger(__name__)


class _NoKeyError(SettingsError):
    """Error for a missing key file or a key file without keys."""


class ApiKeys:
    """API keys from a file with one key per line, empty lines and # comments.

    Only SHA-256 digests of the keys stay in memory. An instance checks the file for changes at most
    once per second, so that operators can replace keys without a restart. If the file is missing or
    has no key, all keys are invalid until the file has a key again. If the file is unreadable or
    has an invalid line, the previous keys stay valid.

    Raises:
        SettingsError: the file is unreadable, has no key, or has a key that is too short.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digests: tuple[bytes, ...] = ()
        self._read_version: tuple[int, ...] = ()
        self._checked_s = time.monotonic()
        self._read()

    def is_valid(self, key: bytes) -> bool:
        """Return whether a key is valid, in a time that is independent of its content."""
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
            _log.info(
                "the service has reloaded its API keys (number of keys: %d)", len(self._digests)
            )
        except _NoKeyError as error:
            self._digests = ()
            _log.error("all API keys are invalid. %s", error)
        except SettingsError as error:
            _log.error("the previous API keys stay valid. %s", error)

    def _read(self) -> None:
        self._read_version = self._file_version()
        try:
            # Windows editors write a byte order mark before the first key
            lines = self._path.read_text(encoding="utf-8-sig").splitlines()
        except FileNotFoundError as error:
            raise _NoKeyError(
                f"The api_keys_file {self._path} does not exist; create it or unset api_keys_file."
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"The api_keys_file {self._path} is not a readable UTF-8 file; correct the file or "
                "unset api_keys_file."
            ) from error
        digests = []
        for number, line in enumerate(lines, start=1):
            key = line.strip()
            if not key or key.startswith("#"):
                continue
            if len(key) < MIN_KEY_CHARS:
                raise SettingsError(
                    f"The key in line {number} of the api_keys_file {self._path} must have at "
                    f"least {MIN_KEY_CHARS} characters (got {len(key)}); write a longer key."
                )
            digests.append(hashlib.sha256(key.encode()).digest())
        if not digests:
            raise _NoKeyError(f"The api_keys_file {self._path} has no key; write one key per line.")
        self._digests = tuple(digests)

    def _file_version(self) -> tuple[int, ...]:
        """Return the inode, modification time and size of the file.

        Kubernetes updates a secret by replacing the file, which changes the inode.
        """
        try:
            stat = self._path.stat()
        except OSError:  # reading the file reports the reason
            return ()
        return stat.st_ino, stat.st_mtime_ns, stat.st_size


# paths for probes, scrapers and people without a key
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
    """Middleware that rejects requests without a valid API key, before reading their body.

    Health checks, metrics, the documentation and the playground need no key.

    Args:
        app: next ASGI application.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the API key of one request."""
        if (
            scope["type"] != "http"
            or is_public(scope["method"], scope["path"])
            or self._keys.is_valid(_bearer_token(scope))
        ):
            await self._app(scope, receive, send)
            return
        error_message = "The request has no valid API key; send a key as Authorization: Bearer KEY."
        await send_error_message(send, 401, error_message, [(b"www-authenticate", b"Bearer")])


def is_public(method: str, path: str) -> bool:
    """Return True if requests with this method and path need no API key."""
    if path == "/":  # GET returns the playground. POST fills masks.
        return method in {"GET", "HEAD"}
    return path in _PUBLIC_PATHS or path.startswith(_PUBLIC_PREFIXES)


def _bearer_token(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[: len(_SCHEME)].lower() == _SCHEME:
            return bytes(value[len(_SCHEME) :].strip())
    return b""
