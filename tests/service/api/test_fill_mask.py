"""Threads of the steps of POST /fill-mask and cancellation after a disconnect."""

import asyncio
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient

from fillmask.api import routes, task_call
from fillmask.api.bodies.fill_request import FillMaskRequest
from fillmask.app import FillMaskApp, create_app
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs
from fillmask.engine.runtime import Runtime
from fillmask.settings import Settings
from fillmask.tasks import event_loop
from fillmask.tasks.fill_mask import strategies
from fillmask.tasks.fill_mask.ranking import rank_targets
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer
from tests.service.tiny import Tiny

ON_THE_LOOP, OFF_THE_LOOP = "the event loop", "another thread"
STEPS = {
    "parse": (FillMaskRequest, "read"),
    "look up": (Tokenizer, "encode_target"),
    "encode": (Tokenizer, "encode"),
    "rank": (strategies, "rank_tokens"),
    "write": (routes, "fills_to_json"),
}


class Watch:
    """Record of the thread on which each step of a request last ran."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.where: dict[str, str] = {}
        for step, (owner, name) in STEPS.items():
            monkeypatch.setattr(owner, name, self._spy(step, getattr(owner, name)))

    def _spy(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def spy(*arguments: object, **named: object) -> object:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                self.where[step] = OFF_THE_LOOP
                assert threading.current_thread().name.startswith("fillmask-long-work")
            else:
                self.where[step] = ON_THE_LOOP
            return function(*arguments, **named)

        return spy


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def post(client: TestClient, body: dict[str, Any], padding: int = 0) -> None:
    """Check that the service accepts a body that ends with this number of spaces."""
    content = json.dumps(body).encode() + b" " * padding
    headers = {"content-type": "application/json"}
    assert client.post("/fill-mask", content=content, headers=headers).status_code == 200


def off_the_loop(watch: Watch) -> set[str]:
    """Return the steps that ran outside of the event loop's thread."""
    assert watch.where.keys() == STEPS.keys() - {"look up"}  # without targets
    return {step for step, where in watch.where.items() if where == OFF_THE_LOOP}


def test_long_work_does_not_stall_the_event_loop(client: TestClient, watch: Watch) -> None:
    # Only long steps move to another thread.
    post(client, {"inputs": "the [MASK]"})
    assert off_the_loop(watch) == set()
    post(client, {"inputs": "the [MASK]"}, padding=task_call.LONG_BODY_BYTES)
    assert off_the_loop(watch) == {"parse"}
    post(client, {"inputs": f"the{' ' * LONG_TEXT_CHARS}[MASK]"})
    assert off_the_loop(watch) == {"encode"}
    texts = [f"the{' ' * 1900}[MASK]"] * 4
    post(client, {"inputs": texts, "parameters": {"top_k": 20}})
    assert off_the_loop(watch) == {"encode", "rank", "write"}


def test_many_targets_do_not_stall_the_event_loop(client: TestClient, watch: Watch) -> None:
    # The text is short, but tokenizing a thousand targets takes a long time.
    targets = [f"word{i}" for i in range(1000)]
    body = {"inputs": "the [MASK]", "parameters": {"targets": targets}}
    assert client.post("/fill-mask", json=body).status_code == 422
    assert watch.where == {"parse": ON_THE_LOOP, "look up": OFF_THE_LOOP}


def test_ranking_many_targets_does_not_stall_the_event_loop(
    client: TestClient, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The request asks for few of the ranked targets, but ranking takes a long time.
    spied = watch._spy("rank targets", rank_targets)
    monkeypatch.setattr(strategies, "rank_targets", spied)
    for limit, where in ((5, OFF_THE_LOOP), (6, ON_THE_LOOP)):
        monkeypatch.setattr(event_loop, "LARGE_RANKING", limit)
        parameters = {"targets": ["dog", "cat", "tea"], "top_k": 1}
        post(client, {"inputs": "the [MASK] and [MASK]", "parameters": parameters})
        assert watch.where["rank targets"] == where


class HeldRuntime:
    """Runtime that waits for the event `go` and records the number of passes in each run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.go.set()
        self.runs: list[int] = []
        run = Runtime.run

        def held(runtime: Runtime, batch: Batch) -> BatchOutputs:
            self.runs.append(len(batch.passes))
            assert self.go.wait(20)
            return run(runtime, batch)

        monkeypatch.setattr(Runtime, "run", held)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldRuntime]:
    runtime = HeldRuntime(monkeypatch)
    yield runtime
    runtime.go.set()


@asynccontextmanager
async def serving(service: FillMaskApp) -> AsyncIterator[int]:
    """Run a server in this event loop and yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(service, lifespan="off", log_config=None, access_log=False)
        server = uvicorn.Server(config)
        async with service.router.lifespan_context(service):
            task = asyncio.create_task(server._serve([listener]))
            try:
                yield listener.getsockname()[1]
            finally:
                server.should_exit = True
                await task


async def ask(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a request without waiting for its response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b'{"inputs": "the [MASK]"}'
    head = b"POST /fill-mask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))
    await writer.drain()
    return reader, writer


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, for at most 20 s."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the server has no such event
            await asyncio.sleep(0.01)


async def test_request_of_a_disconnected_client_is_not_computed(
    tiny: Tiny, held: HeldRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    # The second of three clients disconnects while its request waits.
    with caplog.at_level(logging.INFO):
        service = create_app(Settings(bundle=tiny.path, threads=1))
        async with serving(service) as port:
            batcher = service.state.models.default.pipelines.fill_mask._strategies._batcher
            held.runs.clear()
            held.go.clear()
            first_reader, first = await ask(port)
            await until(lambda: held.runs == [1])
            tokens = batcher._admission._accepted[False]
            _, leaver = await ask(port)
            await until(lambda: batcher._admission._accepted[False] == 2 * tokens)
            leaver.close()
            await leaver.wait_closed()
            await until(lambda: batcher._admission._accepted[False] == tokens)
            last_reader, last = await ask(port)
            await until(lambda: batcher._admission._accepted[False] == 2 * tokens)
            held.go.set()
            for reader, writer in ((first_reader, first), (last_reader, last)):
                assert b" 200 " in await reader.readline()
                writer.close()
                await writer.wait_closed()
    assert held.runs == [1, 1]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
