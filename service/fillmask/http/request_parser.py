"""Strict parser of HTTP/1.1 requests (RFC 9112) with bounded memory, on top of llhttp.

llhttp checks the grammar of requests. This module limits the size of heads and chunk framing. The
module also checks the fields that determine the end of a request. It removes the Upgrade field.
"""

import re
from typing import Protocol

import httptools

from fillmask.errors import quote

MAX_HEAD_BYTES = 32 * 1024
# bytes around a chunk of up to 16 MB, which are its size in hexadecimal and two line ends
_CHUNK_FRAME_BYTES = 10
# numbers of up to 18 digits fit in 64 bits and suffice for any body
_MAX_LENGTH_DIGITS = 18
_HEAD_END = b"\r\n\r\n"
# uri-host [ ":" port ] of RFC 9110, 7.2, which is empty for a target without authority
_HOST = re.compile(rb"[A-Za-z0-9\-._~!$&'()*+,;=%:\[\]]*")

_CLOSE = re.compile(rb"(?i)(^|,)[ \t]*close[ \t]*(,|$)")


class HttpError(Exception):
    """Error for an invalid, unsupported or too large request, which ends the connection."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class RequestReceiver(Protocol):
    """Receiver of the parts of a request, in order."""

    def on_request(self, request: "RequestHead") -> None:
        """Receive the head of a request."""

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""

    def on_request_end(self) -> None:
        """Receive the end of the request."""


class RequestHead:
    """Parsed head of a request.

    Attributes:
        method: HTTP method in capitals.
        target: path and query, without scheme and authority.
        http_version: HTTP version, 1.0 or 1.1.
        headers: fields in the order of arrival, with names in lower case and without trailers.
        keep_alive: true if the request uses HTTP/1.1 and allows another request on the connection.
        expects_continue: true if the client waits for 100 Continue before it sends the body
            (RFC 9110, 10.1.1).
    """

    __slots__ = ("expects_continue", "headers", "http_version", "keep_alive", "method", "target")

    def __init__(self, parser: httptools.HttpRequestParser) -> None:
        self.method: bytes = parser.get_method()
        self.http_version: str = parser.get_http_version()
        self.keep_alive: bool = parser.should_keep_alive() and self.http_version != "1.0"
        self.expects_continue = False
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []


class RequestParser:
    """Parser that splits the bytes of a connection into requests.

    After a complete request the parser keeps further bytes unparsed until `next_request`. Therefore
    pipelined requests take no more memory than their bytes.

    Attributes:
        begun: true if the current request has started. Line ends before a request do not count.
        complete: true if the last byte of the current request has arrived.
        held: unparsed bytes of later requests.
    """

    def __init__(self, receiver: RequestReceiver) -> None:
        self._receiver = receiver
        self._parser = httptools.HttpRequestParser(self)
        self.held = b""
        self._start()

    def _start(self) -> None:
        self.begun = False
        self.complete = False
        self._in_head = True
        self._upgrades = False
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._length_left = 0
        self._framing_left = MAX_HEAD_BYTES
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """Parse new bytes up to the end of the current request.

        Raises:
            HttpError: the request is invalid or too large.
        """
        if self.complete:
            self.held += data
            return
        while data and not self.complete:
            end = self._length_left or self._next_end(data)
            self._feed_piece(data[:end])
            data = data[end:]
        self.held = data

    def next_request(self) -> None:
        """Start the next request with the held bytes.

        Raises:
            HttpError: the request is invalid or too large.
        """
        held, self.held = self.held, b""
        self._start()
        if held:
            self.feed(held)

    def close(self) -> None:
        """Drop the held bytes and break the reference cycle with the receiver."""
        self.held = b""
        self.complete = True
        del self._parser, self._receiver

    def _next_end(self, data: bytes) -> int:
        """Return the byte count up to the next empty line, which may end a head or a last chunk."""
        tail = self._tail
        found = (tail + data).find(_HEAD_END) if tail else data.find(_HEAD_END)
        end = len(data) if found < 0 else found + len(_HEAD_END) - len(tail)
        self._tail = (tail + data[:end])[-3:]
        return end

    def _feed_piece(self, piece: bytes) -> None:
        begins_in_head = self._in_head
        if begins_in_head:
            self._count_framing(len(piece))
            self._parse(piece)
            if not self._in_head:
                self._finish_head()
        elif self._length_left:
            self._length_left -= len(piece)
            self._parse(piece)
        else:
            self._framing_left -= len(piece)  # on_body adds the bytes of the body again
            self._parse(piece)
            self._count_framing(0)
        if self.complete:
            self._receiver.on_request_end()

    def _count_framing(self, size: int) -> None:
        self._framing_left -= size
        if self._framing_left >= 0:
            return
        if self._in_head and len(self._target) > MAX_HEAD_BYTES // 2:
            advice = f"send a shorter target in a head of at most {MAX_HEAD_BYTES} bytes"
            raise HttpError(414, f"The request target is too long; {advice}.")
        if self._in_head:
            what, advice = "request head is", "send fewer or shorter headers"
        else:
            what, advice = "chunk extensions and trailers are", "send fewer or none"
        raise HttpError(431, f"The {what} larger than {MAX_HEAD_BYTES} bytes; {advice}.")

    def _parse(self, piece: bytes) -> None:
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self._upgrades = True
        except httptools.HttpParserError as error:
            raise HttpError(
                400, "The request is not valid HTTP; send HTTP/1.1 without TLS."
            ) from error

    def _finish_head(self) -> None:
        head = RequestHead(self._parser)
        if head.http_version not in {"1.0", "1.1"}:
            version = head.http_version
            raise HttpError(505, f"The service does not support HTTP/{version}; send HTTP/1.1.")
        if head.method == b"CONNECT":
            raise HttpError(
                501, "The service does not support the method CONNECT; use GET or POST."
            )
        head.target = _path_and_query(self._target)
        head.headers = self._headers
        self._read_fields(head)
        if self._upgrades:
            self._parse_without_upgrade(head)
        self._framing_left = MAX_HEAD_BYTES
        self._receiver.on_request(head)

    def _read_fields(self, head: RequestHead) -> None:
        hosts = 0
        for name, value in head.headers:
            if name == b"host":
                hosts += 1
                if not _HOST.fullmatch(value):
                    allowed = "send a host name or address, optionally with a port"
                    host = quote(value.decode("latin-1"))
                    raise HttpError(400, f"The Host header {host} is invalid; {allowed}.")
            elif name == b"content-length":
                self._length_left = _content_length(value)
            elif name == b"transfer-encoding":
                _check_transfer_encoding(value, head.http_version)
            elif name == b"connection" and _CLOSE.search(value):  # llhttp ignores `close` in a list
                head.keep_alive = False
            elif name == b"expect" and value.lower() == b"100-continue":
                head.expects_continue = head.http_version != "1.0"
        if hosts > 1 or (not hosts and head.http_version == "1.1"):
            raise HttpError(400, f"The request must have one Host header (got {hosts}).")

    def _parse_without_upgrade(self, head: RequestHead) -> None:
        """Parse the head again without its Upgrade field, which a server may ignore.

        llhttp treats all bytes after a head with this field as another protocol (RFC 9110, 7.8).
        However, such a request may have a body, for example if it offers h2c (RFC 7540, 3.2).
        """
        head.headers = [field for field in head.headers if field[0] != b"upgrade"]
        fields = b"".join(b"%b: %b\r\n" % field for field in head.headers)
        line = b"%b %b HTTP/%b\r\n" % (head.method, head.target, head.http_version.encode())
        self._upgrades, self._in_head, self.complete = False, True, False
        self._parser = httptools.HttpRequestParser(self)
        self._parse(line + fields + b"\r\n")

    # httptools calls the following methods

    def on_message_begin(self) -> None:
        """Record the first byte of a request."""
        self.begun = True

    def on_url(self, url: bytes) -> None:
        """Append a part of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Append a field of the head and ignore fields of trailers."""
        if self._in_head:
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Record the end of a head."""
        self._in_head = False

    def on_chunk_header(self) -> None:
        """Allow the framing of one more chunk after its size has arrived."""
        self._framing_left = min(self._framing_left + _CHUNK_FRAME_BYTES, MAX_HEAD_BYTES)

    def on_body(self, body: bytes) -> None:
        """Pass a part of a body to the receiver."""
        self._framing_left += len(body)
        self._receiver.on_body(body)

    def on_message_complete(self) -> None:
        """Record the end of a request."""
        self.complete = True


def _content_length(value: bytes) -> int:
    if len(value) > _MAX_LENGTH_DIGITS:
        digits = f"at most {_MAX_LENGTH_DIGITS} digits (got {len(value)})"
        raise HttpError(400, f"The Content-Length must have {digits}.")
    return int(value)


def _check_transfer_encoding(value: bytes, http_version: str) -> None:
    if http_version == "1.0":
        raise HttpError(400, "HTTP/1.0 has no Transfer-Encoding; send Content-Length instead.")
    if value.lower() != b"chunked":
        encoding = quote(value.decode("latin-1"))
        raise HttpError(
            501,
            f"The service does not support the Transfer-Encoding {encoding}; send chunked or none.",
        )


def _path_and_query(target: bytes) -> bytes:
    """Return the target in origin form. Proxies may send the absolute form (RFC 9112, 3.2)."""
    if b"#" in target:
        raise HttpError(400, "The request target must not contain a fragment; encode # as %23.")
    if target[:1] == b"/" or target == b"*":
        return target
    authority_and_path = target.partition(b"://")[2]
    authority, slash, path = authority_and_path.partition(b"/")
    if slash:
        return slash + path
    return b"/" + authority_and_path[len(authority.partition(b"?")[0]) :]
