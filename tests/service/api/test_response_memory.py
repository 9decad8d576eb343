"""Estimated memory of a response, compared with its real size and memory."""

import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from unittest import mock

import pytest
from fastapi.testclient import TestClient
from pydantic_core import to_json

from fillmask.api import task_call
from fillmask.api.task_call import TaskCall
from fillmask.api.wire.open_inference.infer_request import InferRequest
from fillmask.api.wire.open_inference.infer_response import response_to
from fillmask.engine.batcher import Batcher
from fillmask.engine.runtime import Runtime
from fillmask.errors import InvalidRequestError
from fillmask.middleware.transfer import Claim
from fillmask.parameters.limits import Limits
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.fill_mask.plan import PlannedFills
from fillmask.tasks.fill_mask.results import TextFills
from fillmask.tasks.pipeline import Inputs, Plan
from fillmask.tasks.result import RejectedText, accepted
from fillmask.tasks.task import FILL_MASK
from tests.model.samples import VERSES
from tests.service.responses import check_refusal
from tests.service.tiny import VOCABULARY, Tiny
from tests.service.tiny_calls import make_pipeline

WORDS = tuple(word for word in VOCABULARY if word.isalpha())
ESCAPED = "\1" * 600
WIDE = "😀" + " " * 900
REFUSED = tuple("\1" * 80 + f"☃{i}" for i in range(20))
LIMITS = Limits(
    max_tokens=32, max_texts=64, max_masks=128, max_top_k=30, max_passes=512, max_body_bytes=2**20
)
CASES: dict[str, tuple[list[str], FillMaskParameters]] = {
    "many wide fills": ([f"{WIDE}[MASK] and [MASK]"] * 8, FillMaskParameters(top_k=30)),
    "escaped characters": ([f"{ESCAPED} [MASK]"] * 8, FillMaskParameters(top_k=30)),
    "refused targets": (
        ["a [MASK] [MASK]"] * 8,
        FillMaskParameters(targets=(*WORDS[:3], *REFUSED)),
    ),
    "joint": (
        [f"the{' ' * 400}[MASK] at the [MASK]"] * 4,
        FillMaskParameters(strategy="joint", top_k=9),
    ),
    "windows": (
        ["the dog. " * 40 + "[MASK]" + " a cat." * 40 + "[MASK]"] * 4,
        FillMaskParameters(on_long_text="window", top_k=20),
    ),
}


def fail_batcher() -> Batcher:
    """Return a batcher that fails the test if it computes a pass."""

    def compute(_: object) -> Any:
        pytest.fail("computed")

    return Batcher(compute, 1, 64, 10_000, 10_000, 10, pytest.fail)


async def plan_fills(tiny: Tiny, texts: Sequence[str], options: FillMaskParameters) -> PlannedFills:
    """Plan a request with a new pipeline."""
    batcher = fail_batcher()
    try:
        pipeline = make_pipeline(tiny, batcher)
        return await pipeline.plan(Inputs(texts, [options] * len(texts), report_errors=True))
    finally:
        await batcher.close()


def memory_bytes(planned: Plan) -> int:
    """Return what a request claims for a plan."""
    claim = mock.Mock(spec=Claim)
    TaskCall(mock.Mock(), mock.Mock(), b"", claim).claim_size(planned.size)
    [[(claimed,), _]] = claim.add.call_args_list
    return int(claimed)


async def fill(
    tiny: Tiny, texts: Sequence[str], options: FillMaskParameters
) -> tuple[list[TextFills | RejectedText], int]:
    """Return the fills and the peak of traced memory from the first pass to the JSON."""
    batcher = Batcher(Runtime(tiny.path / "model.onnx").run, 1, 64, 10**5, 10**5, 10, pytest.fail)
    pipeline = make_pipeline(tiny, batcher)
    try:
        each = [options] * len(texts)
        await pipeline.compute(texts, each, report_errors=True)  # the first call fills the caches
        planned = await pipeline.plan(Inputs(texts, each, report_errors=True))
        tracemalloc.start()
        found = await pipeline.run(planned)
        content = FILL_MASK.response(found, single=False)
        assert content
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found, peak_bytes
    finally:
        await batcher.close()


@pytest.mark.parametrize(("texts", "options"), CASES.values(), ids=CASES)
async def test_response_is_never_larger_than_estimated(
    tiny: Tiny, texts: list[str], options: FillMaskParameters
) -> None:
    # The estimate covers every wire format.
    # For long responses the estimate is less than three times the size of the JSON.
    # The peak of memory includes the passes and the JSON.
    planned = await plan_fills(tiny, texts, options)
    json_bytes, bound_bytes = planned.size.json_bytes, memory_bytes(planned)
    found, peak_bytes = await fill(tiny, texts, options)
    assert peak_bytes < bound_bytes + 60_000
    assert bound_bytes < 6 * peak_bytes
    content = FILL_MASK.response(found, single=False)
    assert len(content) <= json_bytes
    assert json_bytes < 3 * len(content) or len(content) < 30_000
    masks: list[dict[str, Any]] = [
        {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["[MASK]"]}
    ]
    for binary in (False, True):
        body = {"inputs": masks, "parameters": {"binary_data_output": binary}}
        read = InferRequest.read(to_json(body), None, LIMITS, "fill-mask")
        tensors, _ = response_to(read, "tiny", accepted(found))
        assert len(tensors) < json_bytes + 1_000


async def test_a_text_of_which_all_is_invalid_takes_no_memory(tiny: Tiny) -> None:
    valid = await plan_fills(tiny, ["a [MASK]"], FillMaskParameters())
    mixed = await plan_fills(tiny, ["a dog", "a [MASK]", ""], FillMaskParameters())
    assert memory_bytes(mixed) == memory_bytes(valid)


PREDICT = "/v1/models/tiny:predict"
REQUESTS: dict[str, dict[str, Any]] = {
    "/fill-mask": {"inputs": "a [MASK]"},
    "/score": {"inputs": "a dog"},
    PREDICT: {"instances": ["a [MASK]"]},
    "/classify": {"inputs": "the"},
    "/rerank": {"query": "a", "texts": ["b"]},
    "/embed_sparse": {"inputs": "a"},
}


def test_a_request_without_room_is_not_computed(
    every_model: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaskCall, "claim_size", lambda call, _: call.claim.add(2**40))
    monkeypatch.setattr(Batcher, "submit", _fail)
    for path, body in REQUESTS.items():
        message = "The memory for request bodies and responses is full; try again in 1 s."
        check_refusal(every_model.post(path, json=body), 429, message)


ESCAPES = ["\1" * 2_000 + " [MASK] [MASK]"] * 3  # each fill repeats 12,000 bytes of JSON
LARGE_FILLS = (
    "The response could have 1471920 bytes; the limit is 1000000. Use fewer texts, masks or fills."
)
TARGETS = {"inputs": "a dog", "parameters": {"targets": ["a", "dog"]}}


@pytest.mark.parametrize(
    ("path", "body", "limit", "sentence"),
    [
        ("/fill-mask", {"inputs": ESCAPES, "parameters": {"top_k": 20}}, 10**6, LARGE_FILLS),
        (PREDICT, {"instances": ESCAPES, "parameters": {"top_k": 20}}, 10**6, LARGE_FILLS),
        ("/score", TARGETS, 100, "104 bytes; the limit is 100. Use fewer texts or targets."),
        ("/classify", {"inputs": ["the", "cat"]}, 200, "200. Use fewer texts or a smaller top_k."),
        ("/embed_sparse", {"inputs": VERSES[:4]}, 1000, "Use fewer texts or a smaller top_n."),
    ],
)
def test_a_response_that_is_too_large_is_refused(
    path: str,
    body: dict[str, Any],
    limit: int,
    sentence: str,
    every_model: TestClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_call, "MAX_RESPONSE_BYTES", limit)
    if "top_k" in sentence:
        assert every_model.post(path, json=body | {"parameters": {"top_k": 1}}).is_success
    if "top_n" in sentence:
        assert every_model.post(path, json=body | {"top_n": 5}).is_success
    if path != "/embed_sparse":  # whose vectors have any number of dimensions
        monkeypatch.setattr(Batcher, "submit", _fail)
    answer = every_model.post(path, json=body)
    assert answer.status_code == 422
    assert answer.json()["error"].endswith(sentence)


def _fail(*_: object, **__: object) -> None:
    raise AssertionError


def test_texts_that_a_response_repeats_are_claimed(
    every_model: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed: list[int] = []
    monkeypatch.setattr(Claim, "add", lambda _, size: claimed.append(size))
    body = b'{"query": "a", "texts": ["the cat"], "return_text": %s}'
    totals = []
    for repeats in (b"false", b"true "):
        claimed.clear()
        headers = {"content-type": "application/json"}
        assert every_model.post("/rerank", content=body % repeats, headers=headers).is_success
        totals.append(sum(claimed))
    assert totals[1] - totals[0] == 2 * len(body % b"false")


async def test_largest_response_is_bounded(tiny: Tiny) -> None:
    # One request may reserve at most 40 MB of memory.
    batcher = fail_batcher()
    pipeline = make_pipeline(tiny, batcher)
    for text in (f"the{' ' * 1900}[MASK]", "the" + "\1" * 1900 + "[MASK]"):
        largest = 0
        for fills in range(10, 5_000, 100):
            planned = await pipeline.plan(Inputs([text], [FillMaskParameters(top_k=fills)]))
            with suppress(InvalidRequestError):
                largest = max(largest, memory_bytes(planned))
        assert 10 * 2**20 < largest < 40_000_000
    await batcher.close()
