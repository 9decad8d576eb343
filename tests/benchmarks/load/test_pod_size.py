"""Load on a pod and the table of pod sizes."""

import asyncio
import json

import pytest

from benchmarks.comparison.process import HOST, ServerError
from benchmarks.load import pod_size
from benchmarks.load.pod_size import PodSize


class Pod:
    """Server that returns the same status for every request and records the requests."""

    def __init__(self, status: str) -> None:
        self.status = status
        self.inputs: list[str] = []
        self.connections = 0
        self.open = 0
        self.left = asyncio.Event()  # set while no client is connected

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.split("Content-Length: ")[1].split("\r\n")[0])
                self.inputs.append(json.loads(await reader.readexactly(length))["inputs"])
                writer.write(f"HTTP/1.1 {self.status}\r\ncontent-length: 2\r\n\r\n[]".encode())
        except asyncio.IncompleteReadError:  # the client has disconnected after its response
            writer.close()
            await writer.wait_closed()
            self.open -= 1
            if not self.open:
                self.left.set()


async def loaded(pod: Pod, clients: int) -> pod_size.Load:
    """Send load to a pod and return the measurement."""
    server = await asyncio.start_server(pod, HOST, 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        try:
            return await pod_size.load(port, clients, 0.2)
        finally:
            await pod.left.wait()


@pytest.fixture
def table() -> list[PodSize]:
    return pod_size.read_sizes()


async def test_every_client_has_a_connection_and_texts_of_its_own() -> None:
    pod = Pod("200 OK")
    seen = await loaded(pod, 4)
    assert pod.connections == 4
    assert len(set(pod.inputs[:4])) == 4
    assert 0 < seen.p50_ms <= seen.p99_ms
    assert seen.requests_per_s > 0


async def test_wrong_answer_ends_the_measurement() -> None:
    with pytest.raises(ServerError, match="429"):
        await loaded(Pod("429 Too Many Requests"), 1)


def test_rows_are_read_as_they_are_written(table: list[PodSize]) -> None:
    text = pod_size.PAGE.read_text(encoding="utf-8")
    assert pod_size.HEAD in text
    assert table
    for size in table:
        assert str(size) in text


def test_tokens_are_requests_times_their_tokens(table: list[PodSize]) -> None:
    # Requests per second and tokens per second are measured with the same texts.
    tokens = pod_size.tokens_per_request()
    rounding = 0.5 * tokens + 0.5
    for size in table:
        assert size.tokens_per_s == pytest.approx(size.requests_per_s * tokens, abs=rounding)
