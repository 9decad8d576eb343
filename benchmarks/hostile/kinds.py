"""Kinds of hostile HTTP clients, combined at random from the grammar of HTTP/1.1."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from benchmarks.hostile.grammar import BODIES, CHUNKED, FIELDS, LINES, MIB, chunk

# maximum size of the bytes of one connection before the repeated part
MOST_BYTES = 2 * MIB

Cut = Literal["in one write", "truncated", "dribbled"]
Reading = Literal[
    "reads all",
    "reads nothing",
    "reads slowly",
    "half-closes",
    "resets",
    "reconnects at once",
]


@dataclass(frozen=True)
class Kind:
    """Behaviour of the connections of one hostile client.

    Attributes:
        name: short description.
        sent: first bytes of a connection.
        repeated: bytes that the client sends without end after `sent`, or no bytes.
        cut: division of the bytes into writes. Truncated streams end at a random byte.
        reading: behaviour after sending.
    """

    name: str
    sent: bytes
    repeated: bytes = b""
    cut: Cut = "in one write"
    reading: Reading = "reads all"


KEYS = {"no key": b"", "invalid key": b"Authorization: Bearer invalid\r\n"}
PIPELINED = (1, 1, 1, 2, 20, 1_000)
CUTS: tuple[Cut, ...] = ("in one write", "in one write", "truncated", "dribbled")
READINGS: tuple[Reading, ...] = (
    "reads all",
    "reads nothing",
    "reads slowly",
    "half-closes",
    "resets",
    "reconnects at once",
)
TOKENS = (b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b": ", b" ", b"0\r\n\r\n", b";", b"ffffffff")


def kind(seed: int, index: int) -> Kind:
    """Return a kind that depends only on its seed and index."""
    draw = random.Random(f"{seed} {index}")  # noqa: S311 - a choice, not a secret
    # a valid line often, because the server rejects all others before it reads the fields
    line = "POST /fill-mask" if draw.random() < 0.5 else draw.choice(list(LINES))
    fields = draw.sample(list(FIELDS), draw.choice((0, 0, 0, 1, 1, 2)))
    body = draw.choice(list(BODIES))
    key = draw.choice(list(KEYS))
    without_host = draw.random() < 0.1
    framing, start, repeated = BODIES[body](draw)
    head = [b"" if without_host else b"Host: fillmask\r\n", KEYS[key], framing]
    head += [FIELDS[name](draw) for name in fields]
    draw.shuffle(head)
    request = LINES[line](draw) + b"".join(head) + b"\r\n" + start
    times = max(1, min(draw.choice(PIPELINED), MOST_BYTES // len(request)))
    sent, cut, reading = request * times, draw.choice(CUTS), draw.choice(READINGS)
    parts = [line, *fields, *(["no Host"] if without_host else []), body, key]
    if draw.random() < 0.2:
        parts = ["mutated", *parts]
        sent, repeated = _mutated(draw, sent), _mutated(draw, repeated)
    name = f"{times} x ({', '.join(parts)}), {cut}, {reading}"
    return Kind(name, sent, repeated, cut, reading)


def _mutated(draw: random.Random, data: bytes) -> bytes:
    """Return the bytes after random removals, repetitions and insertions."""
    soup = bytearray(data)
    for _ in range(draw.randint(1, 40) if soup else 0):
        # most changes are near the start, because an error there hides all later ones
        start = int(len(soup) * draw.random() ** 3)
        end = start + draw.choice((1, 2, 10, 1_000))
        change = draw.randrange(5)
        if change == 0:
            del soup[start:end]
        elif change == 1:
            soup[start:start] = soup[start:end] * draw.choice((1, 2, 100))
        elif change == 2:
            soup[start:start] = draw.choice(TOKENS)
        elif change == 3:
            soup[start : start + 1] = draw.randbytes(1)
        else:
            soup += soup[start:end]
    return bytes(soup[: 2 * MOST_BYTES])


_POST = b"POST /fill-mask HTTP/1.1\r\nHost: fillmask\r\n"
_GET = b"GET %b HTTP/1.1\r\nHost: fillmask\r\n\r\n"


def _flood(
    name: str, one: bytes, *, head: bytes = b"", reading: Reading = "reconnects at once"
) -> Kind:
    """Return a kind that sends as many bytes as the server takes and then reconnects."""
    part = one * (MIB // len(one))
    return Kind(name, head + part, part, reading=reading)


NAMED = {
    one.name: one
    for one in (
        _flood("1-byte chunks", chunk(b"x"), head=_POST + CHUNKED + b"\r\n"),
        _flood("CRLFCRLF chunks", chunk(b"\r\n\r\n"), head=_POST + CHUNKED + b"\r\n"),
        _flood("16 KB heads of tiny fields", _POST + b"a:\r\n" * 4_000 + b"\r\n"),
        # within one read of the default receive buffer, where h11 does not check the size of a head
        _flood("120 KB heads of tiny fields", _POST + b"a:\r\n" * 30_000 + b"\r\n"),
        _flood("pipelined unknown paths", _GET % b"/unknown", reading="reads all"),
        _flood("pipelined public paths", _GET % b"/health/live", reading="reads all"),
    )
}
