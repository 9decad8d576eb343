"""Threads of the steps of POST /fill-mask and cancellation after a disconnect."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.api import task_call
from fillmask.api.request_body import request_of
from fillmask.app import create_app
from fillmask.engine.batcher import Batcher
from fillmask.settings import Settings
from fillmask.tasks import pipeline as task_texts
from fillmask.tasks.fill_mask import strategies
from fillmask.tasks.fill_mask.strategies import rank_targets
from fillmask.tasks.task import FILL_MASK, Task
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer
from tests.service.tiny import Tiny

ON_THE_LOOP, OFF_THE_LOOP = "the event loop", "another thread"
STEPS = {
    "parse": (request_of(FILL_MASK), "read"),
    "look up": (Tokenizer, "encode_target"),
    "encode": (Tokenizer, "encode"),
    "rank": (strategies, "rank_tokens"),
    "write": (Task, "response"),
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
        monkeypatch.setattr(task_texts, "LARGE_RANKING", limit)
        parameters = {"targets": ["dog", "cat", "tea"], "top_k": 1}
        post(client, {"inputs": "the [MASK] and [MASK]", "parameters": parameters})
        assert watch.where["rank targets"] == where


async def test_request_of_a_disconnected_client_is_not_computed(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(Settings(bundle=tiny.path, threads=1))
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait(*_: object, **__: object) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    bodies = iter([b'{"inputs": "the [MASK]"}'])

    async def receive() -> dict[str, Any]:
        for body in bodies:
            return {"type": "http.request", "body": body}
        await started.wait()
        return {"type": "http.disconnect"}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/fill-mask",
        "raw_path": b"/fill-mask",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    async with app.router.lifespan_context(app):
        monkeypatch.setattr(Batcher, "submit", wait)
        call = asyncio.create_task(app(scope, receive, send))
        try:
            await asyncio.wait_for(ended.wait(), 10)
        finally:
            call.cancel()
            await asyncio.wait([call])
    assert not [one for one in sent if one.get("status") == 200]
