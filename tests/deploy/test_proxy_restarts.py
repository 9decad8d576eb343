"""The end of a pod under load, without a lost request."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.chaos.load import asking
from tests.chaos.process import serving
from tests.deploy import proxy
from tests.service import tiny

CLIENTS = 8
PAUSE_S = 0.1  # most connections are idle when a pod ends, as nginx may close only idle ones
# nginx closes a connection this long after its last request (keepalive_min_timeout).
CLOSED_AFTER_S = int(proxy.directive("keepalive_min_timeout").removesuffix("s"))

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


class Endpoints:
    """A Kubernetes Service: new connections go to the pod that is ready, open ones stay."""

    def __init__(self, ready: int) -> None:
        self.ready = ready

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        async with await asyncio.start_server(self._connect, "127.0.0.1", 0) as server:
            yield server.sockets[0].getsockname()[1]

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.ready)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(_pass_on(reader, to_writer), _pass_on(to_reader, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@pytest.mark.slow
async def test_end_of_a_pod_loses_no_request(tmp_path: Path) -> None:
    # The order of the manifests: SIGTERM to the service and nginx's preStop hook at the same time,
    # then SIGQUIT to nginx after the service has ended. The delays are shorter.
    bundle = tiny.write_bundle(tmp_path / "tiny")
    async with contextlib.AsyncExitStack() as stack:
        pods = []
        for name in ("old", "new"):
            drain = f"--drain-delay-s={CLOSED_AFTER_S + 2}"
            flags = ("--threads=1", f"--bundle={bundle.path}", drain)
            service, port = stack.enter_context(serving(*flags))
            (tmp_path / name).mkdir()
            pods.append((service, stack.enter_context(proxy.running(tmp_path / name, port))))
        (old, old_proxy), (_, new_proxy) = pods
        endpoints = Endpoints(old_proxy.port)
        address = await stack.enter_async_context(endpoints.listening())
        outcome = await stack.enter_async_context(asking(address, CLIENTS, PAUSE_S))
        await asyncio.sleep(1)
        old.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.5)
        endpoints.ready = new_proxy.port
        await asyncio.sleep(0.5)
        old_proxy.quit()
        assert await asyncio.to_thread(old.wait, 60) == 0
        old_proxy.process.send_signal(signal.SIGQUIT)
        assert await asyncio.to_thread(old_proxy.process.wait, 10) == 0
        await asyncio.sleep(0.5)
    assert outcome.statuses.keys() == {200}, outcome
    assert outcome.statuses[200] > 100
    assert (outcome.lost, outcome.refused, outcome.bad) == (0, 0, 0)
