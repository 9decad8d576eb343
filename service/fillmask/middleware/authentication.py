"""ASGI middleware that requires a valid API key."""

from starlette.types import ASGIApp, Receive, Scope, Send

from fillmask.errors import UnauthorizedError
from fillmask.middleware.api_keys import ApiKeys

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
        """Check the API key of one request.

        Raises:
            UnauthorizedError: the request needs a key and has no valid one.
        """
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
