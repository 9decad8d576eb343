"""Answers that a connection gives by itself, without the application, as the bytes of HTTP."""

from collections.abc import Sequence
from functools import cache

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.errors import overloaded_text
from service.http.middleware.request_id import request_id_of
from service.http.request_parser import RequestHead
from service.http.responses import Headers, error_json, send_error_message


def error_response(status: int, message: str, headers: Headers) -> bytes:
    """Return an error after which the connection is closed.

    Args:
        status: HTTP status.
        message: for the client.
        headers: beside the content's type and length.
    """
    body = error_json(message)
    own = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close" % len(body)
    return b"%b%b%b\r\n\r\n%b" % (STATUS_LINE[status], _lines(headers), own, body)


def overloaded_response(head: RequestHead, retry_after_s: int, headers: Headers) -> bytes:
    """Return a 429, as the application has it.

    Args:
        head: of the request.
        retry_after_s: seconds after which there should be room.
        headers: beside the request's id, the content's type and length, and the wait.
    """
    request_id = (b"x-request-id", request_id_of(head.headers))
    close = b"" if head.keep_alive else b"connection: close\r\n"
    return STATUS_LINE[429] + _lines([*headers, request_id]) + close + _overloaded(retry_after_s)


@cache
def _overloaded(retry_after_s: int) -> bytes:
    """The answer from its headers that are always the same to its end."""
    body = error_json(overloaded_text(retry_after_s))
    own = b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body)
    return own + b"retry-after: %d\r\n\r\n%b" % (retry_after_s, body)


def _lines(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)


async def too_many_connections(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer 429 and close: the application of connections above the limit."""
    headers = [(b"retry-after", b"1"), (b"connection", b"close")]
    await send_error_message(
        send, 429, "There are too many connections; try again in 1 s.", headers
    )
