"""Requests as bytes with the statuses that the RFCs require."""

from dataclasses import dataclass

BODY = b'{"inputs": "the [MASK]"}'
HOST = b"Host: fillmask\r\n"
JSON = HOST + b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
GET = b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /fill-mask HTTP/1.1\r\n" + JSON + LENGTH + b"\r\n" + BODY
CHUNKED = b"POST /fill-mask HTTP/1.1\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%b\r\n" % (len(BODY), BODY)
LAST = b"0\r\n\r\n"
KB = b"x" * 1024


def get(fields: bytes = HOST, line: bytes = b"GET /health/live HTTP/1.1") -> bytes:
    """Return a request without a body."""
    return line + b"\r\n" + fields + b"\r\n"


def post(fields: bytes, body: bytes = BODY, version: bytes = b"1.1") -> bytes:
    """Return a request for fills with additional header fields."""
    return b"POST /fill-mask HTTP/%b\r\n" % version + JSON + fields + b"\r\n" + body


@dataclass(frozen=True)
class Case:
    """Bytes to send and the expected statuses.

    Attributes:
        rule: section of the RFC and the rule in a few words.
        sent: parts of the bytes, in order.
        statuses: statuses of all responses in order, including interim responses.
        closed: whether the server closes the connection instead of answering one more request.
        half_close: whether the client closes its writing side after the last part.
    """

    rule: str
    sent: tuple[bytes, ...]
    statuses: tuple[int, ...]
    closed: bool = False
    half_close: bool = False


def case(
    rule: str, sent: bytes | tuple[bytes, ...], *statuses: int, half_close: bool = False
) -> Case:
    """Return a case after which the connection stays usable, unless `half_close` is true."""
    parts = (sent,) if isinstance(sent, bytes) else sent
    return Case(rule, parts, statuses, closed=half_close, half_close=half_close)


def closing(rule: str, sent: bytes | tuple[bytes, ...], *statuses: int) -> Case:
    """Return a case after which the server closes the connection."""
    return Case(rule, (sent,) if isinstance(sent, bytes) else sent, statuses, closed=True)


REQUEST_LINE = [
    case("9112 3: a request line and fields", GET, 200),
    closing("9112 2.2: a bare CR ends no line", get(HOST + b"X: a\rb\r\n"), 400),
    closing("9112 2.2: no white space before the first field", get(b" X: a\r\n" + HOST), 400),
    closing("9112 3: three parts", get(line=b"GET /health/live"), 400),
    closing("9112 3: no white space in the target", get(line=b"GET /a b HTTP/1.1"), 400),
    case("9110 15.5.6: a known method the path has not", get(line=b"DELETE /info HTTP/1.1"), 405),
    case("9112 3.2.1: a query", get(line=b"GET /health/live?a=b HTTP/1.1"), 200),
    case("9112 3.2.4: asterisk form", get(line=b"OPTIONS * HTTP/1.1"), 404),
    closing("3986 2: only ASCII in a target", get(line=b"GET /\xff HTTP/1.1"), 400),
    closing("9112 3.2: no control characters", get(line=b"GET /\x01 HTTP/1.1"), 400),
    case("3986 2.1: percent-encoded", get(line=b"GET /health%2Flive HTTP/1.1"), 200),
    case("3986 2.1: percent-encoded, and not UTF-8", get(line=b"GET /%ff HTTP/1.1"), 404),
    closing("9112 2.3: the version in lower case", get(line=b"GET / http/1.1"), 400),
    closing("5246 7.4.1.2: TLS without TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
]

FIELDS = [
    closing("9112 3.2: no Host", get(b""), 400),
    closing("9112 3.2: two Hosts", get(HOST + HOST), 400),
    case("9112 3.2: an empty Host", get(b"Host:\r\n"), 200),
    case("9110 7.2: a port", get(b"Host: 127.0.0.1:8000\r\n"), 200),
    case("3986 3.2.2: IPv6", get(b"Host: [::1]:8000\r\n"), 200),
    closing("9112 5.1: no white space before the colon", get(HOST + b"X : a\r\n"), 400),
    closing("9112 5: no field without a name", get(HOST + b": a\r\n"), 400),
    closing("9112 5: no field without a colon", get(HOST + b"Xa\r\n"), 400),
    closing("9110 5.6.2: names are tokens", get(HOST + b"X(: a\r\n"), 400),
    closing("9110 5.5: no NUL in a value", get(HOST + b"X: a\0b\r\n"), 400),
    case("9110 5.5: bytes above ASCII in a value", get(HOST + b"X: \xff\r\n"), 200),
    case("9110 5.1: names in any case", get(b"hOST: a\r\n"), 200),
    case(
        "9110 5.5: white space around a value",
        post(LENGTH + b"X-Request-Timeout-Ms: \t 9000 \t \r\n"),
        200,
    ),
    case(
        "6585 5: the head behind a long body has a limit of its own",
        (post(b"Content-Length: 40960\r\n", KB * 40) + GET[:-9], GET[-9:]),
        400,
        200,
    ),
    case("9110 8.4: identity in any case", post(LENGTH + b"Content-Encoding: Identity\r\n"), 200),
    closing("9110 15.5.16: another coding", post(LENGTH + b"Content-Encoding: gzip\r\n"), 415),
]

FRAMING = [
    case("9112 6.3: a Content-Length", POST, 200),
    case("9112 6: a body in pieces", (POST[:-9], POST[-9:-3], POST[-3:]), 200),
    case("9112 6: one byte at a time", tuple(POST[i : i + 1] for i in range(len(POST))), 200),
    closing("9112 6.3: a Content-Length with a sign", post(b"Content-Length: +3\r\n", b"abc"), 400),
    closing("9112 6.3: a negative one", post(b"Content-Length: -1\r\n"), 400),
    closing("9112 6.3: one in hexadecimal", post(b"Content-Length: 0x3\r\n", b"abc"), 400),
    closing(
        "9112 6.3: two different ones", post(b"Content-Length: 3\r\nContent-Length: 4\r\n"), 400
    ),
    closing("9112 6.3: an empty one", post(b"Content-Length:\r\n"), 400),
    closing("9112 6.3: above 64 bits", post(b"Content-Length: " + b"9" * 30 + b"\r\n"), 400),
    closing("9110 8.6: 5,000 digits", post(b"Content-Length: %b\r\n" % (b"0" * 5000), b""), 400),
    closing("9110 8.6: 5,000 digits, not 0", post(b"Content-Length: %b\r\n" % (b"9" * 5000)), 400),
    closing(
        "9110 8.6: a body that is not wanted", get(HOST + b"Content-Length: 3\r\n") + b"abc", 200
    ),
    case("9112 7.1: chunks", CHUNKED + CHUNK + LAST, 200),
    case(
        "9112 7.1: chunked in any case", post(b"Transfer-Encoding: Chunked\r\n", CHUNK + LAST), 200
    ),
    case(
        "9112 7.1: one byte at a time",
        tuple((CHUNKED + CHUNK + LAST)[i : i + 1] for i in range(len(CHUNKED + CHUNK + LAST))),
        200,
    ),
    case("9112 7.1: zeros before a size", CHUNKED + b"000000" + CHUNK + LAST, 200),
    case(
        "9112 7.1.1: extensions are ignored",
        CHUNKED + CHUNK.replace(b"\r", b";a=b\r", 1) + LAST,
        200,
    ),
    closing("9112 7.1: a size that is no number", CHUNKED + b"zz\r\n", 400),
    closing("9112 7.1: a size with 0x", CHUNKED + b"0x3\r\nabc\r\n", 400),
    closing("9112 7.1: a negative size", CHUNKED + b"-3\r\nabc\r\n", 400),
    closing("9112 7.1: a chunk longer than its size", CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n", 400),
    case("9112 7.1.2: trailers are ignored", CHUNKED + CHUNK + b"0\r\nX: a\r\n\r\n", 200),
    case(
        "9110 6.5.1: trailers are no headers",
        (post(b"Transfer-Encoding: chunked\r\n", CHUNK + b"0\r\nContent-Encoding: gzip\r\n\r\n")),
        200,
    ),
    closing("9112 6.1: a coding nobody knows", post(b"Transfer-Encoding: gzip, chunked\r\n"), 400),
    closing("9112 6.3: chunked must be last", post(b"Transfer-Encoding: gzip\r\n"), 400),
    closing("9112 6.1: chunked twice", post(b"Transfer-Encoding: chunked, chunked\r\n"), 400),
]

CONNECTIONS = [
    case("9112 9.3: one request after the other", (POST, POST), 200, 200),
    case("9112 9.3.2: pipelined", POST + GET + POST, 200, 200, 200),
    case("9112 9.3.2: pipelined, 300 requests", GET * 300, *([200] * 300)),
    case("9112 9.3.2: pipelined behind chunks", CHUNKED + CHUNK + LAST + GET, 200, 200),
    case(
        "9112 9.3.2: pipelined, cut in a line end",
        (CHUNKED + CHUNK + LAST[:-1], b"\n" + GET),
        200,
        200,
    ),
    closing(
        "9112 2.2: garbage behind a request takes no answer away", POST + b"\0\0\0\0", 200, 400
    ),
    closing("9112 9.6: close", get(HOST + b"Connection: close\r\n") + GET, 200),
    closing("9112 9.6: close among others", get(HOST + b"Connection: x, Close\r\n"), 200),
    closing("9112 9.3: HTTP/1.0 is closed", get(line=b"GET /health/live HTTP/1.0"), 200),
    closing("9112 3.2: HTTP/1.0 needs no Host", get(b"", line=b"GET /health/live HTTP/1.0"), 200),
    case("9112 8: half-closed within a body", POST[:-3], half_close=True),
    case("9112 8: half-closed within a head", GET[:-3], half_close=True),
    case(
        "9110 7.8: Upgrade is ignored", get(HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n"), 200
    ),
    case(
        "9110 7.8: h2c with a body, as Java's client and curl --http2 send it",
        post(
            LENGTH + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
            b"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
        ),
        200,
    ),
    case(
        "9110 7.8: h2c with chunks",
        post(
            b"Transfer-Encoding: chunked\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n", CHUNK + LAST
        ),
        200,
    ),
    case(
        "9110 7.8: no request out of a body",
        post(b"Content-Length: %d\r\nConnection: upgrade\r\nUpgrade: x\r\n" % len(GET), GET),
        400,
    ),
    case(
        "6455 4.2: WebSocket is not supported",
        get(HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"),
        200,
    ),
    case(
        "9110 10.1.1: 100 before the body",
        (post(LENGTH + b"Expect: 100-continue\r\n", b""), BODY),
        100,
        200,
    ),
    closing(
        "9110 10.1.1: no 100 where the answer is final",
        post(b"Content-Length: 99999999\r\nExpect: 100-continue\r\n", b""),
        413,
    ),
    closing(
        "9110 10.1.1: not in HTTP/1.0",
        post(LENGTH + b"Expect: 100-continue\r\n", version=b"1.0"),
        200,
    ),
    closing(
        "9110 10.1.1: an answer before the body",
        post(b"Content-Encoding: br\r\nExpect: 100-continue\r\n" + LENGTH, b""),
        415,
    ),
    case("9110 9.3.2: HEAD", get(line=b"HEAD /health/live HTTP/1.1"), 200),
    case("9110 9.3.2: HEAD has no body", get(line=b"HEAD /info HTTP/1.1") + GET, 200, 200),
]

# The server closes these connections before it has read all bytes, and the reset may overtake its
# response.
ENDLESS = [
    closing(
        "9110 15.5.15: a target above the limit", get(line=b"GET /" + KB * 40 + b" HTTP/1.1"), 400
    ),
    closing("6585 5: a head above the limit", get(HOST + b"X: " + KB * 40 + b"\r\n"), 400),
    closing("6585 5: many fields", get(HOST + (b"X: " + KB + b"\r\n") * 40), 400),
    closing(
        "6585 5: a head without an end", b"GET / HTTP/1.1\r\n" + (b"X: " + KB + b"\r\n") * 40, 400
    ),
    closing("9112 2.2: line ends without end", b"\r\n" * 20_000, 400),
    closing("9112 7.1.1: extensions above the limit", CHUNKED + b"1;a=" + KB * 60, 400),
    closing("9112 7.1.2: trailers without end", CHUNKED + b"0\r\n" + b"a:b\r\n" * 20_000, 400),
]

CASES = [*REQUEST_LINE, *FIELDS, *FRAMING, *CONNECTIONS]
