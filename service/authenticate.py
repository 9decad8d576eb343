"""ASGI middleware: only those who have a key may ask the models anything."""

from starlette.types import ASGIApp, Receive, Scope, Send

from service.api_keys import ApiKeys
from service.json_answer import send_sentence

# what probes, scrapers and people who have not got a key yet may see
_OPEN = frozenset(
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
_OPEN_BELOW = ("/docs-assets/", "/playground/")
_SCHEME = b"bearer "


class Authenticate:
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
        if scope["type"] != "http" or _is_open(scope) or self._keys.allow(_key(scope)):
            await self._app(scope, receive, send)
            return
        sentence = "An API key is needed: send it as Authorization: Bearer KEY."
        await send_sentence(send, 401, sentence, [(b"www-authenticate", b"Bearer")])


def _is_open(scope: Scope) -> bool:
    path: str = scope["path"]
    if path == "/":  # the page is; the same path answers clients of Hugging Face
        return scope["method"] in {"GET", "HEAD"}
    return path in _OPEN or path.startswith(_OPEN_BELOW)


def _key(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"authorization" and value[: len(_SCHEME)].lower() == _SCHEME:
            return bytes(value[len(_SCHEME) :].strip())
    return b""
