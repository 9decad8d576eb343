"""Estimated size of a response, compared with its real size and memory."""

import gc
import sys
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from pydantic_core import to_json

from fillmask.api.protocols.infer_request import InferRequest
from fillmask.api.protocols.infer_response import fill_tensors, response_body
from fillmask.api.protocols.predict_v1 import response_json
from fillmask.engine.batcher import Batcher
from fillmask.engine.runtime import Runtime
from fillmask.errors import InvalidRequestError, OverloadedError
from fillmask.parameters.fill_mask import FillOptions
from fillmask.parameters.limits import Limits
from fillmask.parameters.score import ScoreOptions
from fillmask.results.fills import fills_to_json
from fillmask.tasks.fill_mask import FillMaskPipeline
from fillmask.tasks.plan import FillPlanner
from fillmask.tasks.response_size import MAX_RESPONSE_BYTES, ResponseSize, estimate_response_size
from fillmask.tasks.scoring import ScoringPipeline
from tests.service.tiny import MAX_TOKENS, VOCABULARY, Tiny
from tests.service.tiny_calls import make_tokenizer

WORDS = tuple(word for word in VOCABULARY if word.isalpha())
ESCAPED = "\1" * 600
WIDE = "😀" + " " * 900
REFUSED = tuple("\1" * 80 + f"☃{i}" for i in range(20))
LIMITS = Limits(
    max_tokens=32, max_texts=64, max_masks=128, max_top_k=30, max_passes=512, max_body_bytes=2**20
)
CASES: dict[str, tuple[list[str], FillOptions]] = {
    "a short text": (["the [MASK]"], FillOptions()),
    "many fills": ([f"the{' ' * 1500}[MASK] and [MASK]"] * 8, FillOptions(top_k=30)),
    "wide characters": ([f"{WIDE}[MASK] and [MASK]"] * 8, FillOptions(top_k=30)),
    "escaped characters": ([f"{ESCAPED} [MASK]"] * 8, FillOptions(top_k=30)),
    "targets": (["the [MASK] and [MASK]"] * 8, FillOptions(targets=WORDS)),
    "wide targets": ([f"the{' ' * 900}[MASK]"] * 8, FillOptions(targets=("dog", "cat"))),
    "some targets": (["a [MASK]"] * 8, FillOptions(targets=("dog", *WORDS), top_k=2)),
    "refused targets": (["a [MASK] [MASK]"] * 8, FillOptions(targets=(*WORDS[:3], *REFUSED))),
    "words": ([f"the{' ' * 400}[MASK] at the [MASK]"] * 4, FillOptions(granularity="word")),
    "joint": ([f"the{' ' * 400}[MASK] at the [MASK]"] * 4, FillOptions(strategy="joint", top_k=9)),
    "windows": (
        ["the dog. " * 40 + "[MASK]" + " a cat." * 40 + "[MASK]"] * 4,
        FillOptions(on_long_text="window", top_k=20),
    ),
}


async def fill(tiny: Tiny, texts: Sequence[str], options: FillOptions) -> tuple[Any, int, int]:
    """Return the fills, the bytes reserved for the response, and the peak of traced memory."""
    batcher = Batcher(Runtime(tiny.path / "model.onnx").run, 1, 64, 10**5, 10**5, 10, pytest.fail)
    use_case = FillMaskPipeline(
        make_tokenizer(tiny),
        batcher,
        max_tokens=MAX_TOKENS,
        vocab_size=len(VOCABULARY),
        max_masks=100,
        max_passes=1_000,
    )
    reserved: list[int] = []

    def start(memory_bytes: int) -> None:
        reserved.append(memory_bytes)
        gc.collect()
        tracemalloc.start()

    try:
        await use_case.fill(texts, options, report_errors=True)  # the first call fills the caches
        found = await use_case.fill(texts, options, report_errors=True, reserve=start)
        content = fills_to_json(found, single=False)
        assert content
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found, reserved[0], peak_bytes
    finally:
        await batcher.close()


def size_of(tiny: Tiny, texts: Sequence[str], options: FillOptions) -> ResponseSize:
    """Return the estimated size of the response to a request."""
    planner = FillPlanner(make_tokenizer(tiny), MAX_TOKENS, 1_000)
    return estimate_response_size(
        [planner.plan(text, options, "inputs", report_errors=True) for text in texts]
    )


@pytest.mark.parametrize(("texts", "options"), CASES.values(), ids=CASES)
async def test_answer_is_never_larger_than_estimated(
    tiny: Tiny, texts: list[str], options: FillOptions
) -> None:
    # The estimate covers every wire format.
    # For long responses the estimate is less than three times the size of the JSON.
    # The peak of memory includes the passes and the JSON.
    size = size_of(tiny, texts, options)
    found, reserved_bytes, peak_bytes = await fill(tiny, texts, options)
    assert peak_bytes < reserved_bytes + 60_000
    assert reserved_bytes < 6 * peak_bytes
    content = fills_to_json(found, single=False)
    assert len(content) <= size.json_bytes
    assert size.json_bytes < 3 * len(content) or len(content) < 30_000
    assert reserved_bytes == size.memory_bytes
    assert len(response_json(found)) < size.json_bytes + 100
    masks: list[dict[str, Any]] = [
        {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["[MASK]"]}
    ]
    for binary in (False, True):
        body = {"inputs": masks, "parameters": {"binary_data_output": binary}}
        read = InferRequest.read(to_json(body), None, LIMITS, "fill-mask")
        content, _ = response_body("tiny", read, fill_tensors(found.fills))
        assert len(content) < size.json_bytes + 1_000


@pytest.mark.parametrize("text", ["the " * 500, "😀 " * 500])
def test_fills_may_be_wider_than_their_text(tiny: Tiny, text: str) -> None:
    size = size_of(tiny, [f"{text}[MASK]"], FillOptions(on_long_text="window", top_k=30))
    filled_bytes = sys.getsizeof(f"{text}☃")
    assert size.memory_bytes - 2 * size.json_bytes > 30 * filled_bytes


async def test_answer_without_room_is_not_computed(tiny: Tiny) -> None:
    # The check of the size precedes the computation of fills and scores.
    def refuse(memory_bytes: int) -> None:
        assert memory_bytes > 0
        raise OverloadedError("There is no room.", 1)

    def compute(_: object) -> Any:
        pytest.fail("computed")

    batcher = Batcher(compute, 1, 64, 10_000, 10_000, 10, pytest.fail)
    tokenizer = make_tokenizer(tiny)
    fills = FillMaskPipeline(
        tokenizer,
        batcher,
        max_tokens=MAX_TOKENS,
        vocab_size=len(VOCABULARY),
        max_masks=9,
        max_passes=9,
    )
    with pytest.raises(OverloadedError):
        await fills.fill(["a [MASK]"], FillOptions(), reserve=refuse)
    scoring = ScoringPipeline(tokenizer, batcher, MAX_TOKENS, 100)
    with pytest.raises(OverloadedError):
        await scoring.score(["a dog"], [ScoreOptions()], "inputs", reserve=refuse)
    await batcher.close()


def test_largest_answer_is_bounded(tiny: Tiny) -> None:
    # One request may reserve at most 40 MB of memory.
    for text in (f"the{' ' * 1900}[MASK]", "😀" + " " * 1900 + "[MASK]", "\1" * 1900 + "[MASK]"):
        largest = 0
        for fills in range(10, 5_000, 10):
            with suppress(InvalidRequestError):
                size = size_of(tiny, [text], FillOptions(top_k=fills))
                largest = max(largest, size.memory_bytes)
                assert size.json_bytes <= MAX_RESPONSE_BYTES
        assert 10 * 2**20 < largest < 40_000_000
