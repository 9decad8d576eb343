"""Restarts of services behind nginx under load, without a lost request."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.chaos.load import Outcome, ask_until
from tests.chaos.process import free_port, serving
from tests.deploy import proxy
from tests.service import tiny

CLIENTS = 8
PAUSE_S = 0.1  # most connections are idle when a pod ends, as nginx may close only idle ones
# nginx closes a connection this long after its last request (keepalive_min_timeout).
CLOSED_AFTER_S = int(proxy.directive("keepalive_min_timeout").removesuffix("s"))

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Flags of a service with a tiny model."""
    bundle = tiny.write_bundle(tmp_path_factory.mktemp("bundles") / "tiny")
    return ["--threads=1", f"--bundle={bundle.path}"]


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


def assert_nothing_is_lost(outcome: Outcome) -> None:
    assert outcome.statuses.keys() == {200}, outcome
    assert outcome.statuses[200] > 100
    assert (outcome.lost, outcome.refused, outcome.bad) == (0, 0, 0)


@pytest.mark.slow
async def test_end_of_a_pod_loses_no_request(flags: list[str], tmp_path: Path) -> None:
    # The order of the manifests: SIGTERM to the service and nginx's preStop hook at the same time,
    # then SIGQUIT to nginx after the service has ended. The delays are shorter.
    stop = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        pods = []
        for name in ("old", "new"):
            drain = f"--drain-delay-s={CLOSED_AFTER_S + 2}"
            service, port = await stack.enter_async_context(serving(*flags, drain))
            (tmp_path / name).mkdir()
            pods.append((service, stack.enter_context(proxy.running(tmp_path / name, port))))
        (old, old_proxy), (_, new_proxy) = pods
        endpoints = Endpoints(old_proxy.port)
        address = await stack.enter_async_context(endpoints.listening())
        asking = asyncio.create_task(ask_until(stop, "127.0.0.1", address, CLIENTS, PAUSE_S))
        await asyncio.sleep(1)
        old.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.5)
        endpoints.ready = new_proxy.port
        await asyncio.sleep(0.5)
        old_proxy.quit()
        assert await old.wait() == 0
        old_proxy.process.send_signal(signal.SIGQUIT)
        assert await asyncio.to_thread(old_proxy.process.wait, 10) == 0
        await asyncio.sleep(0.5)
        stop.set()
        assert_nothing_is_lost(await asking)


@pytest.mark.slow
async def test_restarts_of_services_behind_one_proxy_lose_no_request(
    flags: list[str], tmp_path: Path
) -> None:
    # As in compose, nginx keeps running. With only one service, clients get 502 during its start.
    stop = asyncio.Event()
    ports = [free_port(), free_port()]
    async with contextlib.AsyncExitStack() as stack:
        running = [
            (await stack.enter_async_context(serving(*flags, port=port)))[0] for port in ports
        ]
        address = stack.enter_context(proxy.running(tmp_path, *ports)).port
        asking = asyncio.create_task(ask_until(stop, "127.0.0.1", address, CLIENTS, PAUSE_S))
        for place in (0, 1):
            await asyncio.sleep(0.5)
            running[place].send_signal(signal.SIGTERM)
            assert await running[place].wait() == 0
            again = serving(*flags, port=ports[place])
            running[place], _ = await stack.enter_async_context(again)
        await asyncio.sleep(0.5)
        stop.set()
        assert_nothing_is_lost(await asking)
