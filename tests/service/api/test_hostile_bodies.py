"""Bodies of up to 1 MiB that the service must reject in little time and memory."""

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from fillmask.api.request_body import request_of
from fillmask.api.wire.open_inference.infer_request import InferRequest
from fillmask.errors import FillMaskError
from fillmask.parameters.limits import Limits
from fillmask.tasks.task import FILL_MASK, SCORE

LIMITS = Limits(
    max_tokens=256, max_texts=64, max_masks=128, max_top_k=100, max_passes=512, max_body_bytes=2**20
)
JSON = "application/json"
MANY = 30_000  # fields
MOST = 65_000  # elements
# the measured maximum of a body is 10 MB and 40 ms, or 200 ms with tracemalloc
PEAK_BYTES = 20 * 2**20
CPU_S = 1.0
LONGEST_SENTENCE = 500


def tensor(**fields: Any) -> dict[str, Any]:
    """Return an input tensor of the Open Inference Protocol with these fields."""
    return {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["a [MASK]"], **fields}


def nested(depth: int) -> Any:
    """Return an empty list inside `depth` other lists."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


FIELDS = {f"field {i}": 0 for i in range(MANY)}
BIG = 10**4200

INFER: dict[str, dict[str, Any]] = {
    "50,000 axes": {"inputs": [tensor(shape=[1] * 50_000)]},
    "large axes": {"inputs": [tensor(shape=[10**18] * 40_000)]},
    "axes of thousands of digits": {"inputs": [tensor(shape=[BIG] * 8)]},
    "wrong axes": {"inputs": [tensor(shape=["x"] * MOST)]},
    "wrong inputs": {"inputs": [0] * MOST},
    "empty inputs": {"inputs": [{}] * MANY},
    "nested data": {"inputs": [tensor(data=nested(900))]},
    "rows of data": {"inputs": [tensor(data=[["a"] * 30_000] * 2)]},
    "many texts": {"inputs": [tensor(data=["a"] * MOST, shape=[MOST])]},
    "unknown fields": {"inputs": [tensor()], **FIELDS},
    "unknown fields of an input": {"inputs": [tensor(**FIELDS)]},
    "unknown parameters": {"inputs": [tensor()], "parameters": FIELDS},
    "unknown parameters of an input": {"inputs": [tensor(parameters=FIELDS)]},
    "a long field": {"inputs": [tensor(**{"é\n" * 200_000: 1})]},
    "a long name": {"inputs": [tensor(name="x" * 900_000, datatype="y")]},
    "a long datatype": {"inputs": [tensor(datatype="y" * 900_000)]},
    "a long output": {"inputs": [tensor()], "outputs": [{"name": "x" * 900_000}]},
    "wrong outputs": {"inputs": [tensor()], "outputs": [0] * MOST},
}
TEXTS: dict[str, dict[str, Any]] = {
    "unknown fields": {"inputs": "a [MASK]", **FIELDS},
    "unknown parameters": {"inputs": "a [MASK]", "parameters": FIELDS},
    "unknown parameters of each": {
        "inputs": ["a [MASK]"] * 64,
        "parameters": [dict(list(FIELDS.items())[:450])] * 64,
    },
    "wrong texts": {"inputs": [0] * 60},
    "many texts": {"inputs": ["a"] * MOST},
    "wrong parameters": {"inputs": "a [MASK]", "parameters": {"top_k": [0] * MOST}},
    "a long number": {"inputs": "a [MASK]", "parameters": {"top_k": BIG}},
    "a long choice": {"inputs": "a [MASK]", "parameters": {"strategy": "\1" * 150_000}},
    "many targets": {"inputs": "a [MASK]", "parameters": {"targets": [0] * MOST}},
    "a long span": {"inputs": "a dog", "parameters": {"span": [0] * MOST}},
    "a prefix of another type": {"inputs": "a dog", "parameters": {"prefix": [0] * MOST}},
    "a long on_error": {"inputs": "a [MASK]", "on_error": "x" * 900_000},
}


def check(read: Callable[[bytes], object], body: bytes) -> None:
    """Check that reading the body fails within the bounds on time, memory and message length."""
    assert len(body) <= LIMITS.max_body_bytes
    tracemalloc.start()
    started_s = time.process_time()
    with pytest.raises(FillMaskError) as caught:
        read(body)
    assert time.process_time() - started_s < CPU_S
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(caught.value.text) < LONGEST_SENTENCE
    assert peak_bytes < PEAK_BYTES


@pytest.mark.parametrize("body", INFER.values(), ids=INFER)
def test_infer(body: dict[str, Any]) -> None:
    check(lambda content: InferRequest.read(content, None, LIMITS, "fill-mask"), encoded(body))


@pytest.mark.parametrize("body", TEXTS.values(), ids=TEXTS)
def test_texts(body: dict[str, Any]) -> None:
    # Every task and protocol reads its texts and parameters in the same way.
    read = request_of(SCORE).read if "span" in str(body)[:99] else request_of(FILL_MASK).read
    check(lambda content: read(content, JSON, LIMITS), encoded(body))


def encoded(value: dict[str, Any]) -> bytes:
    """Return a body as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
