"""Server that answers all requests with the same bytes, to measure the load generator's limit."""

from __future__ import annotations

import argparse
import asyncio

from benchmarks.comparison.process import HOST

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"
_END_OF_HEADERS = b"\r\n\r\n"
_LENGTH = b"content-length:"


class Protocol(asyncio.Protocol):
    """HTTP protocol that parses only the length of a request."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - from create_server
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each complete request."""
        self._received += data
        while (length := request_length(self._received)) is not None:
            self._received = self._received[length:]
            self._transport.write(_ANSWER)


def request_length(received: bytes) -> int | None:
    """Return the length of the first request.

    Returns:
        Length in bytes. None for an incomplete request.
    """
    headers, end, _ = received.partition(_END_OF_HEADERS)
    if not end:
        return None
    body_bytes = 0
    for line in headers.lower().split(b"\r\n"):
        if line.startswith(_LENGTH):
            body_bytes = int(line.removeprefix(_LENGTH))
    length = len(headers) + len(end) + body_bytes
    return length if len(received) >= length else None


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Protocol, HOST, port)
    await server.serve_forever()


def main() -> None:
    """Run the server until a signal ends the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", required=True, type=int)
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
