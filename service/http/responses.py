"""JSON responses as ASGI messages, and the headers of requests."""

from collections.abc import Sequence

from pydantic_core import to_json
from starlette.types import Scope, Send

from service.errors import FillMaskError, OverloadedError


def header(scope: Scope, name: bytes) -> str | None:
    """The first of a name, which is in lower case; None where there is none."""
    for known, value in scope["headers"]:
        if known == name:
            return bytes(value).decode("latin-1")
    return None


Headers = Sequence[tuple[bytes, bytes]]


async def send_json(send: Send, status: int, content: bytes, headers: Headers = ()) -> None:
    """Send a whole answer.

    Args:
        send: of the connection.
        status: HTTP status.
        content: JSON.
        headers: beside the content's type and length.
    """
    length = b"%d" % len(content)
    own = ((b"content-length", length), (b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": content})


def error_json(message: str) -> bytes:
    """The body that every error has."""
    return to_json({"error": message})


async def send_error_message(send: Send, status: int, message: str, headers: Headers = ()) -> None:
    """Answer with a message about what is wrong."""
    await send_json(send, status, error_json(message), headers)


async def send_error(send: Send, error: FillMaskError) -> None:
    """Answer with the error's status and message."""
    headers = []
    if isinstance(error, OverloadedError):
        headers.append((b"retry-after", b"%d" % error.retry_after_s))
    await send_error_message(send, error.status, error.text, headers)
