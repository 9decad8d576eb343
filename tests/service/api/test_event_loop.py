"""Threads of the steps of a request, and cancellation after a disconnect."""

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
from fillmask.tasks.classify.pipeline import ClassificationPipeline
from fillmask.tasks.fill_mask import strategies
from fillmask.tasks.task import CLASSIFY, FILL_MASK, Task
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer
from tests.service.tiny import Tiny

# functions of the steps, of which each task has its own to parse and to rank
STEPS: list[tuple[str, Any, str]] = [
    ("parse", request_of(FILL_MASK), "read"),
    ("parse", request_of(CLASSIFY), "read"),
    ("look up", Tokenizer, "encode_target"),
    ("encode", Tokenizer, "encode"),
    ("rank", strategies, "rank_tokens"),
    ("rank", ClassificationPipeline, "_rank"),
    ("rank targets", strategies, "rank_targets"),
    ("write", Task, "response"),
]
Threads = dict[str, bool]


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Threads:
    """Whether each step of a request last ran outside of the event loop's thread."""
    found: Threads = {}

    def spy(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: object, **named: object) -> object:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                found[step] = True
                assert threading.current_thread().name.startswith("fillmask-long-work")
            else:
                found[step] = False
            return function(*arguments, **named)

        return call

    for step, owner, name in STEPS:
        monkeypatch.setattr(owner, name, spy(step, getattr(owner, name)))
    return found


FILLS, LABELS = "/fill-mask", "/classify"
HALF = " " * (LONG_TEXT_CHARS // 2)
PAIR = {"text": "the cat sat", "text_pair": "the dog lay by the door"}
MANY = {"inputs": [f"the{' ' * 1900}[MASK]"] * 4, "parameters": {"top_k": 20}}


@pytest.mark.parametrize(
    ("path", "body", "padding", "large_ranking", "long_steps"),
    [
        (FILLS, {"inputs": "the [MASK]"}, 0, None, set()),
        (FILLS, {"inputs": "the [MASK]"}, task_call.LONG_BODY_BYTES, None, {"parse"}),
        (FILLS, {"inputs": f"the{' ' * LONG_TEXT_CHARS}[MASK]"}, 0, None, {"encode"}),
        (FILLS, MANY, 0, None, {"encode", "rank", "write"}),
        (LABELS, {"inputs": "the"}, 0, None, set()),
        (LABELS, {"inputs": "the"}, task_call.LONG_BODY_BYTES, None, {"parse"}),
        (
            LABELS,
            {"inputs": {"text": f"{HALF}the", "text_pair": f"{HALF}cat"}},
            0,
            None,
            {"encode"},
        ),
        (LABELS, {"inputs": ["the"]}, 0, 5, set()),
        (LABELS, {"inputs": ["the", PAIR]}, 0, 5, {"rank", "write"}),
    ],
)
def test_only_long_steps_leave_the_event_loop(
    path: str,
    body: dict[str, Any],
    padding: int,
    large_ranking: int | None,
    long_steps: set[str],
    every_model: TestClient,
    moved: Threads,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if large_ranking is not None:
        monkeypatch.setattr(task_texts, "LARGE_RANKING", large_ranking)
    content = json.dumps(body).encode() + b" " * padding
    headers = {"content-type": "application/json"}
    assert every_model.post(path, content=content, headers=headers).is_success
    steps = ("parse", "encode", "rank", "write")
    assert moved == {step: step in long_steps for step in steps}


def test_many_targets_do_not_stall_the_event_loop(client: TestClient, moved: Threads) -> None:
    # The text is short, but tokenizing a thousand targets takes a long time.
    targets = [f"word{i}" for i in range(1000)]
    body = {"inputs": "the [MASK]", "parameters": {"targets": targets}}
    assert client.post("/fill-mask", json=body).status_code == 422
    assert moved == {"parse": False, "look up": True}


@pytest.mark.parametrize(("large_ranking", "leaves"), [(5, True), (6, False)])
def test_ranking_many_targets_does_not_stall_the_event_loop(
    client: TestClient,
    moved: Threads,
    monkeypatch: pytest.MonkeyPatch,
    *,
    large_ranking: int,
    leaves: bool,
) -> None:
    # The request asks for few of the ranked targets, but ranking takes a long time.
    monkeypatch.setattr(task_texts, "LARGE_RANKING", large_ranking)
    parameters = {"targets": ["dog", "cat", "tea"], "top_k": 1}
    body = {"inputs": "the [MASK] and [MASK]", "parameters": parameters}
    assert client.post("/fill-mask", json=body).is_success
    assert moved["rank targets"] is leaves


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
