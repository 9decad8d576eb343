"""Strict, bounded parsing of HTTP/1.1 requests, one at a time (RFC 9112), around llhttp.

llhttp checks the grammar. What it leaves to its user is here: the size of heads and of the framing
around chunks, the fields that decide where a request ends, and requests to change the protocol.
"""

import re
from typing import Protocol

import httptools

MAX_HEAD_BYTES = 32 * 1024
# around a chunk of up to 16 MB: its size in hexadecimal and two line ends
_CHUNK_FRAME_BYTES = 10
# 18 digits are more bytes than any limit allows, and fit in 64 bits
_MAX_LENGTH_DIGITS = 18
_HEAD_END = b"\r\n\r\n"
# uri-host [ ":" port ] of RFC 9110, 7.2; empty where the target has no authority
_HOST = re.compile(rb"[A-Za-z0-9\-._~!$&'()*+,;=%:\[\]]*")

_CLOSE = re.compile(rb"(?i)(^|,)[ \t]*close[ \t]*(,|$)")


class HttpError(Exception):
    """A request that breaks the rules of HTTP, and after which the connection has to be closed.

    Attributes:
        status: HTTP status of the answer.
        message: what is wrong and what is allowed, for the client.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class RequestReceiver(Protocol):
    """Takes the parts of a request, in order."""

    def on_request(self, request: "RequestHead") -> None:
        """Take the head of a request."""

    def on_body(self, body: bytes) -> None:
        """Take a part of its body."""

    def on_request_end(self) -> None:
        """Note that the request is complete."""


class RequestHead:
    """The head of a request.

    Attributes:
        method: the request's method, in capitals.
        target: path and query, without scheme and authority.
        http_version: 1.0 or 1.1.
        headers: fields in the order received, names in lower case, without trailers.
        keep_alive: whether the client wants to use the connection again.
        expects_continue: whether it waits for 100 before it sends the body (RFC 9110, 10.1.1).
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
    """Turns the bytes of a connection into requests.

    After a complete request further bytes are held unparsed until `next_request`, so that requests
    sent ahead of their answers take no more memory than their bytes.

    Args:
        receiver: takes the requests.

    Attributes:
        begun: whether a byte of the present request has come; line ends before it do not count.
        complete: whether the present request has come whole.
        held: bytes of later requests, which wait to be parsed.
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
        """Parse what has come, up to the end of the present request.

        Raises:
            HttpError: the request is not valid or too large.
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
        """Begin with the next request, the present one having been answered.

        Raises:
            HttpError: as `feed`.
        """
        held, self.held = self.held, b""
        self._start()
        if held:
            self.feed(held)

    def close(self) -> None:
        """Drop what is held, and the receiver, which has it as well."""
        self.held = b""
        self.complete = True
        del self._parser, self._receiver

    def _next_end(self, data: bytes) -> int:
        """Length of the data up to the next empty line, where a head or a last chunk may end."""
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
            self._framing_left -= len(piece)  # on_body gives back what is no framing
            self._parse(piece)
            self._count_framing(0)
        if self.complete:
            self._receiver.on_request_end()

    def _count_framing(self, size: int) -> None:
        self._framing_left -= size
        if self._framing_left >= 0:
            return
        if self._in_head and len(self._target) > MAX_HEAD_BYTES // 2:
            raise HttpError(414, f"The request target is above {MAX_HEAD_BYTES} bytes.")
        what = "head" if self._in_head else "chunk extensions and trailers"
        verb = "is" if self._in_head else "are"
        raise HttpError(431, f"The {what} of the request {verb} above {MAX_HEAD_BYTES} bytes.")

    def _parse(self, piece: bytes) -> None:
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self._upgrades = True
        except httptools.HttpParserError as error:
            raise HttpError(400, "The request is not valid HTTP.") from error

    def _finish_head(self) -> None:
        head = RequestHead(self._parser)
        if head.http_version not in {"1.0", "1.1"}:
            raise HttpError(505, "The HTTP version is not supported; send HTTP/1.1.")
        if head.method == b"CONNECT":
            raise HttpError(501, "The method CONNECT is not supported.")
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
                    raise HttpError(400, "The Host header must be a host and may have a port.")
            elif name == b"content-length":
                self._length_left = _content_length(value)
            elif name == b"transfer-encoding":
                _check_transfer_encoding(value, head.http_version)
            elif name == b"connection" and _CLOSE.search(value):  # llhttp misses it in a list
                head.keep_alive = False
            elif name == b"expect" and value.lower() == b"100-continue":
                head.expects_continue = head.http_version != "1.0"
        if hosts > 1 or (not hosts and head.http_version == "1.1"):
            raise HttpError(400, "The request must have one Host header.")

    def _parse_without_upgrade(self, head: RequestHead) -> None:
        """Parse the head again without its Upgrade field, which a server may ignore.

        llhttp takes everything behind a head with that field for another protocol, the body as
        well (RFC 9110, 7.8; RFC 9113, 3.1 in its first edition: h2c with a body).
        """
        head.headers = [field for field in head.headers if field[0] != b"upgrade"]
        fields = b"".join(b"%b: %b\r\n" % field for field in head.headers)
        line = b"%b %b HTTP/%b\r\n" % (head.method, head.target, head.http_version.encode())
        self._upgrades, self._in_head, self.complete = False, True, False
        self._parser = httptools.HttpRequestParser(self)
        self._parse(line + fields + b"\r\n")

    def on_message_begin(self) -> None:
        """Called by llhttp at the first byte of a request."""
        self.begun = True

    def on_url(self, url: bytes) -> None:
        """Called by llhttp with a part of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by llhttp with a field of the head or of the trailers."""
        if self._in_head:
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Called by llhttp at the end of a head."""
        self._in_head = False

    def on_chunk_header(self) -> None:
        """Called by llhttp behind the size of a chunk."""
        self._framing_left = min(self._framing_left + _CHUNK_FRAME_BYTES, MAX_HEAD_BYTES)

    def on_body(self, body: bytes) -> None:
        """Called by llhttp with a part of a body."""
        self._framing_left += len(body)
        self._receiver.on_body(body)

    def on_message_complete(self) -> None:
        """Called by llhttp at the end of a request."""
        self.complete = True


def _content_length(value: bytes) -> int:
    if len(value) > _MAX_LENGTH_DIGITS:
        allowed = f"at most {_MAX_LENGTH_DIGITS} are allowed"
        raise HttpError(400, f"The Content-Length has {len(value)} digits; {allowed}.")
    return int(value)


def _check_transfer_encoding(value: bytes, http_version: str) -> None:
    if http_version == "1.0":
        raise HttpError(400, "HTTP/1.0 has no Transfer-Encoding; send Content-Length.")
    if value.lower() != b"chunked":
        raise HttpError(501, "The only Transfer-Encoding supported is chunked.")


def _path_and_query(target: bytes) -> bytes:
    """The target in origin form; from a proxy it may come in absolute form (RFC 9112, 3.2)."""
    if b"#" in target:
        raise HttpError(400, "The request target must not have a fragment.")
    if target[:1] == b"/" or target == b"*":
        return target
    authority_and_path = target.partition(b"://")[2]
    authority, slash, path = authority_and_path.partition(b"/")
    if slash:
        return slash + path
    return b"/" + authority_and_path[len(authority.partition(b"?")[0]) :]
