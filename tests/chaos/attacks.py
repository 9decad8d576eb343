"""Attacks on a service on this machine: on its memory, and on the time of its event loop.

    .venv-dev/bin/python -m tests.chaos.attacks PORT NAME...

The attacks run until somebody ends the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from fillmask.bundles.bundle import default_bundle_path
from tests.chaos.requests import PAUSE_S, ask, connected, head, many, post, random_word

MIB = 2**20

Attack = Callable[[int, random.Random], Awaitable[None]]


async def targets(port: int, draw: random.Random) -> None:
    """Send requests with the maximum of 10,000 targets, each unique with about 90 characters."""
    common = random_word(draw, 70)

    async def one() -> None:
        words = [f"{common}{draw.randrange(10**12):012}{i:06}" for i in range(10_000)]
        body = {"inputs": "the [MASK]", "parameters": {"targets": words}}
        await ask(port, post("/fill-mask", body))

    await many(2, one)


async def target_scores(port: int, draw: random.Random) -> None:
    """Send requests with the maximum of 10,000 targets, 120 masks and one fill per mask."""
    vocabulary = json.loads((default_bundle_path() / "tokenizer.json").read_text())["model"][
        "vocab"
    ]
    words = [word for word in vocabulary if word.isalpha()]

    async def one() -> None:
        parameters = {"targets": draw.sample(words, 10_000), "top_k": 1}
        body = {"inputs": "[MASK] " * 120, "parameters": parameters}
        await ask(port, post("/fill-mask", body))

    await many(4, one)


async def bodies(port: int, draw: random.Random) -> None:
    """Send large incomplete bodies over 300 connections."""
    part = b'{"inputs": "' + b"x" * (MIB - 2000)

    async def one() -> None:
        with contextlib.suppress(OSError):
            async with connected(port) as (reader, writer):
                writer.write(head("/fill-mask", MIB) + part)
                for _ in range(20):
                    await asyncio.sleep(1)
                    writer.write(b"x")
                    if reader.at_eof() or await _has_answer(reader):
                        return

    async def later() -> None:
        await asyncio.sleep(draw.random())
        await one()

    await many(300, later)


async def _has_answer(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.01):
            await reader.read(1)
            return True
    except TimeoutError:
        return False


async def expansion(port: int, draw: random.Random) -> None:
    """Send maximum-size bodies of tiny JSON values, which take more memory after parsing."""
    requests = [
        post(path, b"[" + part * (MIB // len(part) - 2) + b"0]")
        for part in (b"[],", b"{},", b"1.5,", b"[[[[[[[]]]]]]],")
        for path in ("/fill-mask", "/score", "/v2/models/m/infer", "/v1/models/m:predict")
    ]

    async def one() -> None:
        await ask(port, draw.choice(requests))

    await many(8, one)


async def unread_answers(port: int, draw: random.Random) -> None:
    """Send short requests for the longest responses without reading these responses."""

    async def one() -> None:
        # the response is just below the limit of 5 MiB
        text = "[MASK] " * 100 + " " * 1_000
        request = post("/fill-mask", {"inputs": text, "parameters": {"top_k": 25}})
        with contextlib.suppress(OSError):
            async with connected(port) as (reader, writer):
                reader._transport.pause_reading()  # type: ignore[attr-defined]
                for _ in range(5):
                    writer.write(request)
                    await asyncio.sleep(1 + draw.random())

    await many(60, one)


async def trailers(port: int, _draw: random.Random) -> None:
    """Send a chunked body with endless trailers."""
    await _endless(port, b"0\r\n", b"a:b\r\n" * 10_000)


async def chunk_extensions(port: int, _draw: random.Random) -> None:
    """Send a chunk with an endless extension."""
    await _endless(port, b"1", b";a=b" * 10_000)


async def small_chunks(port: int, _draw: random.Random) -> None:
    """Send a body in chunks of one byte with extensions."""
    await _endless(port, b"", b"1;ab=cdefgh\r\nx\r\n" * 4_000)


async def chunk_floods(port: int, draw: random.Random) -> None:
    """Send chunks of one byte or of line ends as fast as possible, and reset the connection.

    h11 once parsed such chunks without a pause, so that no other client got an answer.
    """
    chunks = (b"1\r\nx\r\n", b"4\r\n\r\n\r\n\r\n")
    await _flood(port, head("/fill-mask", None), lambda: draw.choice(chunks) * 100_000)


async def head_floods(port: int, draw: random.Random) -> None:
    """Pipeline requests whose heads consist of thousands of tiny fields, and reconnect at once."""

    def requests() -> bytes:
        fields = b"a:\r\n" * draw.choice((4_000, 30_000))
        return (b"POST /fill-mask HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n") * 20

    await _flood(port, b"", requests)


async def _flood(port: int, start: bytes, draw_part: Callable[[], bytes]) -> None:
    async def one() -> None:
        part = draw_part()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(3), connected(port) as (reader, writer):
                writer.write(start)
                while not reader.at_eof():
                    writer.write(part)
                    await writer.drain()

    await many(4, one)


async def _endless(port: int, start: bytes, part: bytes) -> None:
    async def one() -> None:
        with contextlib.suppress(OSError):
            async with connected(port) as (reader, writer):
                writer.write(head("/fill-mask", None) + start)
                while not reader.at_eof():
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0.005)
        await asyncio.sleep(PAUSE_S)

    await many(2, one)


async def slow_heads(port: int, draw: random.Random) -> None:
    """Send incomplete request heads of almost the maximum size of 32 KiB, line by line."""

    async def one() -> None:
        with contextlib.suppress(OSError):
            async with connected(port) as (reader, writer):
                writer.write(b"POST /fill-mask HTTP/1.1\r\nHost: x\r\n")
                for i in range(31):
                    writer.write(b"x-%d: " % i + b"y" * 1000 + b"\r\n")
                    await asyncio.sleep(draw.random() * 0.3)
                    if reader.at_eof():
                        return

    await many(100, one)


async def scores(port: int, draw: random.Random) -> None:
    """Send scoring requests that need about the allowed number of passes."""

    async def one() -> None:
        texts = [" ".join(random_word(draw, 4) for _ in range(4)) for _ in range(40)]
        await ask(port, post("/score", {"inputs": texts, "on_error": "report"}))

    await many(8, one)


async def wide_texts(port: int, _draw: random.Random) -> None:
    """Send long texts of few tokens whose characters take four bytes each in memory."""

    async def one() -> None:
        texts = ["\\ud83d\\ude00" + " " * 15_000 + "[MASK]"] * 60
        content = ", ".join(f'"{text}"' for text in texts)
        await ask(port, post("/fill-mask", f'{{"inputs": [{content}]}}'.encode()))

    await many(8, one)


ATTACKS: dict[str, Attack] = {
    "targets": targets,
    "target scores": target_scores,
    "bodies": bodies,
    "expansion": expansion,
    "unread answers": unread_answers,
    "trailers": trailers,
    "chunk extensions": chunk_extensions,
    "small chunks": small_chunks,
    "chunk floods": chunk_floods,
    "head floods": head_floods,
    "slow heads": slow_heads,
    "scores": scores,
    "wide texts": wide_texts,
}


async def run(names: Sequence[str], port: int) -> None:
    """Run attacks concurrently and restart each attack that ends or loses its connection."""
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(_again(ATTACKS[name], port, random.Random(name)))  # noqa: S311 - a choice, not a secret


async def _again(attack: Attack, port: int, draw: random.Random) -> None:
    while True:
        with contextlib.suppress(OSError, EOFError, ExceptionGroup):
            await attack(port, draw)
        await asyncio.sleep(PAUSE_S)


@contextmanager
def under(names: Iterable[str], port: int) -> Iterator[None]:
    """Run attacks during the block, in a separate process that does not slow down other clients."""
    command = [sys.executable, "-m", "tests.chaos.attacks", str(port), *names]
    with subprocess.Popen(command) as process:
        try:
            yield
            code = process.poll()
            assert code is None, f"the attacks have ended early (exit code {code})"
        finally:
            process.kill()


if __name__ == "__main__":
    os.nice(5)
    asyncio.run(run(sys.argv[2:], int(sys.argv[1])))
