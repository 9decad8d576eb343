"""API keys in a file that operators may replace at any time, and their middleware."""

import errno
import hashlib
import hmac
import logging
import stat
import time
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from fillmask.errors import SettingsError, UnauthorizedError
from fillmask.regular_files import FileTooLargeError, IrregularFileError, read_regular_file

MIN_KEY_CHARS = 16
MAX_FILE_BYTES = 2**20  # thousands of keys
CHECK_INTERVAL_S = 0.5  # so that a change applies within a second
# errors of a path that leads nowhere
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}

_log = logging.getLogger(__name__)


class _NoKeyError(SettingsError):
    """Error for a missing key file or a key file without keys."""


class ApiKeys:
    """API keys from a file with one key per line, empty lines and # comments.

    Only their SHA-256 digests stay in memory. The file is checked for changes at most every half
    second. If it is missing, has no key or is no regular file, all keys are invalid until it has a
    key again. If it is unreadable, too large or invalid, the previous keys stay valid.

    Raises:
        SettingsError: the file is one of these.
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
        digests = []
        for number, line in enumerate(self._content().splitlines(), start=1):
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

    def _content(self) -> str:
        try:
            # Windows editors write a byte order mark before the first key
            return read_regular_file(self._path, MAX_FILE_BYTES).decode("utf-8-sig")
        except IrregularFileError as error:
            raise _NoKeyError(
                f"The api_keys_file {self._path} must be a regular file or a link to one (got "
                f"{error.kind}); replace it by a file or unset api_keys_file."
            ) from error
        except FileTooLargeError as error:
            raise SettingsError(
                f"The api_keys_file {self._path} must have at most {MAX_FILE_BYTES} bytes (got "
                "more); remove unused keys."
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno in _MISSING:
                raise _NoKeyError(
                    f"The api_keys_file {self._path} does not exist; create it or unset "
                    "api_keys_file."
                ) from error
            raise SettingsError(
                f"The api_keys_file {self._path} is not a readable UTF-8 file; correct the file or "
                "unset api_keys_file."
            ) from error

    def _file_version(self) -> tuple[int, ...]:
        """Return the inode, modification time and size of the file.

        Kubernetes updates a secret by replacing the file, which changes the inode.
        """
        try:
            found = self._path.stat()
        except OSError:  # reading the file reports the reason
            return ()
        if not stat.S_ISREG(found.st_mode):
            return (found.st_ino,)  # without the time, which use of a directory or a device changes
        return found.st_ino, found.st_mtime_ns, found.st_size


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
    """Middleware that rejects requests without a valid API key, before reading their body."""

    def __init__(self, app: ASGIApp, keys: ApiKeys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or raise an UnauthorizedError if it needs a key and has none."""
        public = is_public(scope["method"], scope["path"])
        if not public and not self._keys.is_valid(_bearer_token(scope)):
            raise UnauthorizedError(
                "The request has no valid API key; send a key as Authorization: Bearer KEY."
            )
        await self._app(scope, receive, send)


def is_public(method: str, path: str) -> bool:
    if path == "/":  # GET returns the playground. POST fills masks.
        return method in {"GET", "HEAD"}
    return path in _PUBLIC_PATHS or path.startswith(_PUBLIC_PREFIXES)


def _bearer_token(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[: len(_SCHEME)].lower() == _SCHEME:
            return bytes(value[len(_SCHEME) :].strip())
    return b""
