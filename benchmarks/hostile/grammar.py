"""Parts of hostile HTTP/1.1 requests: request lines, fields and bodies."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

KIB, MIB = 2**10, 2**20
BODY = b'{"inputs": "Paris is the [MASK] of France."}'
CHUNKED = b"Transfer-Encoding: chunked\r\n"

Part = Callable[[random.Random], bytes]
# returns the fields that frame a body, and the first and the repeated bytes of this body
Framed = Callable[[random.Random], tuple[bytes, bytes, bytes]]


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    """Return one chunk of a body in chunked coding."""
    return b"%x%b\r\n%b\r\n" % (len(data), extension, data)


def _line(method: bytes, target: bytes, version: bytes = b"HTTP/1.1") -> bytes:
    return b"%b %b %b\r\n" % (method, target, version)


def _filled(draw: random.Random, data: bytes) -> bytes:
    """Return chunks of one random size, about 128 KiB in all."""
    size = draw.choice((1, 2, 16, 64 * KIB))
    one = chunk((data * size)[:size])
    return one * (128 * KIB // len(one) + 1)


LINES: dict[str, Part] = {
    "POST /fill-mask": lambda _: _line(b"POST", b"/fill-mask"),
    "GET /health/live": lambda _: _line(b"GET", b"/health/live"),
    "GET /openapi.json": lambda _: _line(b"GET", b"/openapi.json"),
    "HEAD /docs": lambda _: _line(b"HEAD", b"/docs"),
    "unknown path": lambda draw: _line(b"GET", b"/%x" % draw.getrandbits(64)),
    "path of escapes": lambda _: _line(b"POST", b"/" + b"%2e%2e%2f%00" * 500),
    "absolute form": lambda _: _line(b"POST", b"http://other.example:1/fill-mask?a=b"),
    "authority form": lambda _: _line(b"CONNECT", b"other.example:443"),
    "huge target": lambda draw: _line(b"GET", b"/" + b"a" * draw.randint(8 * KIB, 256 * KIB)),
    "bad version": lambda draw: _line(
        b"POST", b"/fill-mask", draw.choice((b"HTTP/2.0", b"HTTP/1.10", b"HTTP/0.9", b"http/1.1"))
    ),
    "version 1.0": lambda _: _line(b"POST", b"/fill-mask", b"HTTP/1.0"),
    "no version": lambda _: b"GET /\r\n",
    "lower-case method": lambda _: _line(b"post", b"/fill-mask"),
    "NUL bytes": lambda _: _line(b"PO\0ST", b"/fill\0mask"),
    "empty lines first": lambda draw: (
        b"\r\n" * draw.randint(1, 20_000) + _line(b"POST", b"/fill-mask")
    ),
    "HTTP/2 preface": lambda _: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" * 500,
}

FIELDS: dict[str, Part] = {
    "tiny fields": lambda draw: b"a:\r\n" * draw.choice((100, 2_000, 4_000, 40_000)),
    "unique fields": lambda draw: b"".join(
        b"x%d: y\r\n" % i for i in range(draw.choice((90, 1_500, 20_000)))
    ),
    "one huge field": lambda draw: b"X: " + b"y" * draw.choice((15, 60, 512)) * KIB + b"\r\n",
    "field without end": lambda _: b"X: " + b"y" * MIB,
    "folded lines": lambda draw: b"X: y\r\n" + b" z\r\n" * draw.choice((3, 3_000, 50_000)),
    "white space only": lambda draw: b"X:" + b" \t" * draw.choice((100, 7_000)) + b"\r\n",
    "two lengths": lambda _: b"Content-Length: 1\r\nContent-Length: 1\r\n",
    "contradicting lengths": lambda _: b"Content-Length: 1\r\nContent-Length: 2\r\n",
    "bad length": lambda draw: (
        b"Content-Length: "
        + draw.choice((b"-1", b"+1", b"1_0", b"0x10", b"1, 1", b"9" * 5_001, b""))
        + b"\r\n"
    ),
    "odd transfer coding": lambda draw: (
        b"Transfer-Encoding: "
        + draw.choice(
            (b"gzip, chunked", b"chunked, chunked", b"\x0bchunked", b"identity", b"CHUNKED")
        )
        + b"\r\n"
    ),
    "Expect": lambda _: b"Expect: 100-continue\r\n",
    "unknown Expect": lambda _: b"Expect: 200-ok\r\n",
    "Upgrade h2c": lambda _: (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n"
    ),
    "Upgrade websocket": lambda _: (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    ),
    "Connection": lambda draw: (
        b"Connection: "
        + draw.choice((b"close", b"keep-alive", b"close, keep-alive", b"te, host", b"," * 9_000))
        + b"\r\n"
    ),
    "second Host": lambda _: b"Host: other.example\r\n",
    "obs-fold first": lambda _: b" X: y\r\n",
    "bare LF": lambda _: b"X: y\nZ: y\n",
    "bare CR": lambda _: b"X: y\rZ: y\r\n",
    "NUL in a field": lambda _: b"X\0: y\0\r\n",
    "non-ASCII": lambda _: b"X: \xff\xfe\xc3\x28\r\n\xff: y\r\n",
}


def _chunks(start: Part, repeated: Part = lambda _: b"") -> Framed:
    return lambda draw: (CHUNKED, start(draw), repeated(draw))


def _length(length: int, start: bytes, repeated: bytes = b"") -> Framed:
    return lambda _: (b"Content-Length: %d\r\n" % length, start, repeated)


BODIES: dict[str, Framed] = {
    "no body": lambda _: (b"", b"", b""),
    "exact body": _length(len(BODY), BODY),
    "body too short": _length(len(BODY) + 100, BODY),
    "body too long": _length(1, BODY),
    "body of 1 MiB": _length(MIB, b"[" * MIB),
    "endless body": _length(10**12, b"x" * 64 * KIB, b"x" * 64 * KIB),
    "unframed body": lambda _: (b"", BODY, b"x" * 64 * KIB),
    "chunks": _chunks(lambda draw: _filled(draw, b"x") + b"0\r\n\r\n"),
    "endless chunks": _chunks(lambda draw: _filled(draw, b"x"), lambda draw: _filled(draw, b"x")),
    "endless CRLFCRLF chunks": _chunks(
        lambda draw: _filled(draw, b"\r\n\r\n"), lambda draw: _filled(draw, b"\r\n\r\n")
    ),
    "chunk extensions": _chunks(
        lambda draw: chunk(b"x", b";a=b" * draw.choice((1, 100, 4_000))) * 100,
        lambda draw: chunk(b"x", b";a=b" * draw.choice((1, 100, 4_000))) * 100,
    ),
    "endless chunk extension": _chunks(lambda _: b"1", lambda _: b";a=b" * 10_000),
    "trailers": _chunks(lambda _: chunk(BODY) + b"0\r\n" + b"a: b\r\n" * 1_000 + b"\r\n"),
    "endless trailers": _chunks(lambda _: chunk(BODY) + b"0\r\n", lambda _: b"a:b\r\n" * 10_000),
    "bad chunk size": _chunks(
        lambda draw: (
            draw.choice((b"g", b"-1", b"0x1", b"", b" 1", b"1 ;", b"F" * 17)) + b"\r\nx\r\n"
        )
    ),
    "chunk size of 5,001 digits": _chunks(lambda _: b"1" * 5_001 + b"\r\n", lambda _: b"x" * MIB),
    "chunk size of zeros": _chunks(lambda _: b"0" * 19 + b"1\r\nx\r\n", lambda _: b"0" * 60 * KIB),
    "chunk without its end": _chunks(lambda _: b"1\r\nxy\r\n" * 1_000),
    "gzip": lambda _: (
        b"Content-Encoding: gzip\r\nContent-Length: 10240\r\n",
        gzip.compress(b"[" * 10 * MIB, mtime=0)[: 10 * KIB].ljust(10 * KIB, b"\0"),
        b"",
    ),
}
