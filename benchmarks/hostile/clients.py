"""Connections of hostile clients of one kind, in a separate process.

    .venv-dev/bin/python -m benchmarks.hostile.clients PORT CONNECTIONS SECONDS KIND

KIND is a name or SEED:INDEX. The process prints the number of connections that it has opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import socket
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.hostile.kinds import NAMED, Kind, kind
from benchmarks.hostile.requests import HOST

HELD_S = 2.0  # maximum time of a connection that waits or reads
REPEATED_S = 3.0  # maximum time of a connection that sends without end
DRIBBLES = 200  # maximum number of writes of a dribbled stream before the rest
SEND_BUFFER_BYTES = 128 * 1024
RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s


def named_kind(name: str) -> Kind:
    """Return the kind of a name or of SEED:INDEX."""
    if name in NAMED:
        return NAMED[name]
    seed, _, index = name.partition(":")
    return kind(int(seed), int(index))


async def connect_once(port: int, one: Kind, draw: random.Random) -> None:
    """Behave like one connection of a kind."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        # a larger buffer only costs time of this process and memory of the kernel
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        client.settimeout(0)  # the event loop needs sockets that do not block
        await loop.sock_connect(client, (HOST, port))
        reading = loop.create_task(_read(client, one, draw))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPEATED_S):
                    await _send(client, one, draw)
            if one.reading == "half-closes":
                client.shutdown(socket.SHUT_WR)
            if one.reading == "resets":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            elif one.reading == "reads nothing":
                await asyncio.sleep(draw.uniform(0, HELD_S))
            elif one.reading != "reconnects at once":
                await asyncio.wait([reading], timeout=HELD_S)
        finally:
            reading.cancel()
            await asyncio.wait([reading])


async def _send(client: socket.socket, one: Kind, draw: random.Random) -> None:
    loop = asyncio.get_running_loop()
    sent = memoryview(one.sent)
    if one.cut == "truncated":
        await loop.sock_sendall(client, sent[: draw.randrange(len(sent) + 1)])
        return
    if one.cut == "dribbled":
        for _ in range(DRIBBLES):
            size = draw.choice((1, 2, 5, 100, 5_000))
            await loop.sock_sendall(client, sent[:size])
            sent = sent[size:]
            await asyncio.sleep(draw.choice((0, 0, 0.001, 0.02)))
            if not sent:
                break
    await loop.sock_sendall(client, sent)
    while one.repeated:
        await loop.sock_sendall(client, one.repeated)


async def _read(client: socket.socket, one: Kind, draw: random.Random) -> None:
    """Read while the connection sends, as its kind does."""
    loop = asyncio.get_running_loop()
    if one.reading not in {"reads all", "reads slowly", "half-closes"}:
        return
    slow = one.reading == "reads slowly"
    with contextlib.suppress(OSError):
        size = draw.randint(1, 64) if slow else 65_536
        received = await loop.sock_recv(client, size)
        while received:
            await asyncio.sleep(0.05 if slow else 0)
            received = await loop.sock_recv(client, size)


async def flood(port: int, connections: int, seconds: float, one: Kind) -> None:
    """Keep a number of connections busy, print how many were opened and exit."""
    opened = 0

    def end() -> None:
        print(opened, flush=True)
        os._exit(0)  # closes all connections at once, which takes seconds in 1,000 tasks

    async def run(number: int) -> None:
        nonlocal opened
        draw = random.Random(number)  # noqa: S311 - a choice, not a secret
        while True:
            opened += 1
            try:
                await connect_once(port, one, draw)
            except OSError:
                await asyncio.sleep(0.001)  # a server that refuses would make this a busy loop
            await asyncio.sleep(0)

    asyncio.get_running_loop().call_later(seconds, end)
    async with asyncio.TaskGroup() as group:
        for number in range(connections):
            group.create_task(run(number))


@asynccontextmanager
async def flooded(
    port: int, connections: int, seconds: float, name: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run hostile clients in a separate process, which ends with the block at the latest."""
    arguments = map(str, (port, connections, seconds, name))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.hostile.clients",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


if __name__ == "__main__":
    _, port_, connections_, seconds_, name_ = sys.argv
    os.nice(5)  # real attackers use no CPU time of the server
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(flood(int(port_), int(connections_), float(seconds_), named_kind(name_)))
