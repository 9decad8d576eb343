"""Limit on the number of JSON values in a body, checked before parsing."""

import json
import time
import tracemalloc

import pytest

from fillmask.api.request_body import read_json
from fillmask.errors import InvalidRequestError
from fillmask.strict_json import MAX_VALUES, check_value_count

MIB = 2**20
# each body becomes 15 to 30 MB of Python objects when it is parsed
EXPANDING = {
    "lists": b"[" + b"[]," * (MIB // 3 - 1) + b"0]",
    "fields": b"{" + b",".join(b'"%x":0' % i for i in range(MIB // 10)) + b"}",
    "not closed": b"[{" * (MIB // 2),
}


@pytest.mark.parametrize("content", EXPANDING.values(), ids=EXPANDING)
def test_body_with_too_many_values_is_rejected(content: bytes) -> None:
    # The rejection takes at most 0.3 s of CPU time and 4 MiB of memory.
    tracemalloc.start()
    with pytest.raises(InvalidRequestError) as caught:
        read_json(content, "application/json")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "must have at most 65536 JSON values (got" in caught.value.text
    assert peak_bytes < 4 * MIB
    started_s = time.process_time()
    with pytest.raises(InvalidRequestError):
        check_value_count(content, "The body")
    assert time.process_time() - started_s < 0.3


@pytest.mark.parametrize(
    "text", ["a, b: [c] {d}, " * 70_000, '"[{,:' * 100_000, '\\",\\' * 100_000]
)
def test_characters_in_strings_do_not_count(text: str) -> None:
    # Brackets, commas and escaped quotes in a text are not JSON values.
    value = {"inputs": text, "and": [text[:1000]]}
    content = json.dumps(value).encode()
    assert read_json(content, "application/json") == value


@pytest.mark.parametrize("extra", [0, 1])
def test_count_is_exact(extra: int) -> None:
    # The sample has lists, objects, and strings that contain JSON syntax and end with a backslash.
    strings = ['[\\"{,\\'] * (MAX_VALUES // 2 - 2)
    others = [{"a": 1}] * (MAX_VALUES // 6) + [0] * (MAX_VALUES // 2 - 3 * (MAX_VALUES // 6))
    content = json.dumps([*strings, *others, *[0] * (2 + extra)]).encode()
    assert len(content) < 16 * MAX_VALUES
    if extra:
        with pytest.raises(InvalidRequestError, match=r"at most 65536 JSON values \(got 65537\)"):
            check_value_count(content, "The body")
    else:
        check_value_count(content, "The body")


def test_ten_thousand_targets_are_allowed() -> None:
    # 64 lists of a thousand targets are also within the limit.
    for value in (["word"] * 10_000, [["word"] * 1_000] * 64):
        check_value_count(json.dumps(value).encode() + b" " * MIB, "The body")
