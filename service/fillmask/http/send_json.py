"""JSON responses as ASGI messages."""

from collections.abc import Sequence

from pydantic_core import to_json
from starlette.types import Send

from fillmask.errors import FillMaskError, OverloadedError

Headers = Sequence[tuple[bytes, bytes]]


async def send_json(send: Send, status: int, content: bytes, headers: Headers = ()) -> None:
    """Send a complete JSON response.

    Args:
        content: JSON body.
        headers: headers in addition to Content-Type and Content-Length.
    """
    length = b"%d" % len(content)
    own = ((b"content-length", length), (b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": content})


def error_json(message: str) -> bytes:
    """Return the JSON body of an error response."""
    return to_json({"error": message})


async def send_error_message(send: Send, status: int, message: str, headers: Headers = ()) -> None:
    """Send an error response with a message."""
    await send_json(send, status, error_json(message), headers)


async def send_error(send: Send, error: FillMaskError) -> None:
    """Send an error response with the status and message of an exception."""
    headers = []
    if isinstance(error, OverloadedError):
        headers.append((b"retry-after", b"%d" % error.retry_after_s))
    await send_error_message(send, error.status, error.text, headers)
