"""Responses that a connection sends in place of the application."""

from collections.abc import Sequence
from functools import cache

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from fillmask.errors import overloaded_text
from fillmask.http.middleware.request_id import request_id_of
from fillmask.http.request_parser import RequestHead
from fillmask.http.send_json import Headers, error_json, send_error_message


def error_response(status: int, message: str, headers: Headers) -> bytes:
    """Return an error response with the header Connection: close.

    Args:
        headers: headers in addition to Content-Type, Content-Length and Connection.
    """
    body = error_json(message)
    own = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close" % len(body)
    return b"%b%b%b\r\n\r\n%b" % (STATUS_LINE[status], _lines(headers), own, body)


def overloaded_response(head: RequestHead, retry_after_s: int, headers: Headers) -> bytes:
    """Return a 429 response that is identical to the response of the application.

    Args:
        headers: headers in addition to X-Request-ID, Content-Type, Content-Length and Retry-After.
    """
    request_id = (b"x-request-id", request_id_of(head.headers))
    close = b"" if head.keep_alive else b"connection: close\r\n"
    return STATUS_LINE[429] + _lines([*headers, request_id]) + close + _overloaded(retry_after_s)


@cache
def _overloaded(retry_after_s: int) -> bytes:
    body = error_json(overloaded_text(retry_after_s))
    own = b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body)
    return own + b"retry-after: %d\r\n\r\n%b" % (retry_after_s, body)


def _lines(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)


async def too_many_connections(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Respond with 429. This ASGI application serves the connections above the limit."""
    headers = [(b"retry-after", b"1"), (b"connection", b"close")]
    message = "The service has too many open connections; try again in 1 s."
    await send_error_message(send, 429, message, headers)
