"""JSON request bodies of all protocols, and the strict parser below them."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pydantic_core import from_json

from fillmask.api.request_body import request_of
from fillmask.api.wire.kserve_v1 import read_instances
from fillmask.api.wire.open_inference.infer_request import InferRequest
from fillmask.errors import FillMaskError, InvalidRequestError
from fillmask.parameters.limits import Limits
from fillmask.strict_json import parse_json
from fillmask.tasks.task import CLASSIFY, FILL_MASK, SCORE
from tests.fuzzing.target import FindingError, Target, check_message

LIMITS = Limits(
    max_tokens=32, max_texts=8, max_masks=8, max_top_k=20, max_passes=64, max_body_bytes=2**20
)
_TYPE = "application/json"
_JITER_MAX_DEPTH = 200
_DIGITS = re.compile(rb"\d{4300}")

FILL_BODIES: list[dict[str, Any]] = [
    {"inputs": "Paris is the [MASK] of France.", "parameters": {"top_k": 5.0}},
    {
        "inputs": ["a [MASK]", {"text": "b", "text_pair": "[MASK]"}],
        "parameters": {"targets": ["tea", "😀"], "on_long_text": "window"},
        "options": {"use_cache": True, "wait_for_model": None},
        "on_error": "report",
    },
    {
        "inputs": ["a [MASK]", "b"],
        "parameters": [{"granularity": "word", "max_word_tokens": 3}, None],
    },
    {"inputs": "[MASK] [MASK]", "parameters": {"strategy": "joint", "order": "left_to_right"}},
]
SCORE_BODIES: list[dict[str, Any]] = [
    {"inputs": "Rome is a city.", "parameters": {"variant": "original", "span": [0, 4]}},
    {"inputs": {"text": "a", "text_pair": "b"}, "parameters": {"part": "text", "prefix": "a"}},
]
CLASSIFY_BODIES: list[dict[str, Any]] = [
    {"inputs": ["a", "b"], "parameters": {"top_k": 1, "function_to_apply": "softmax"}}
]
INFER_BODIES: list[dict[str, Any]] = [
    {
        "id": "1",
        "model_name": "tiny",
        "parameters": {"task": "fill-mask", "top_k": 3, "binary_data_output": True},
        "inputs": [
            {"name": "text", "shape": [1, 2], "datatype": "BYTES", "data": [["a [MASK]", "b"]]},
            {"name": "targets", "shape": [1], "datatype": "BYTES", "data": ["tea"]},
        ],
        "outputs": [{"name": "score", "parameters": {"binary_data": False}}],
    },
    {
        "inputs": [
            {"name": "x", "shape": [1], "datatype": "BYTES", "data": ["a"], "parameters": {}},
            {"name": "text_pair", "shape": [1.0], "datatype": "BYTES", "data": ["b"]},
        ]
    },
]


class JsonBodies(Target):
    """Every JSON body that the API reads, with one parse of the same bytes per endpoint."""

    more_words = (
        *("instances", "report", "independent", "confidence", "text-classification", "within_word"),
        *("sigmoid", "none", "token", "binary_data_size", "score", "error"),
    )

    def __init__(self) -> None:
        self._readers: list[Callable[[bytes], Any]] = [
            *(
                partial(request_of(task).read, content_type=_TYPE, limits=LIMITS)
                for task in (FILL_MASK, SCORE, CLASSIFY)
            ),
            *(
                partial(read_instances, content_type=_TYPE, limits=LIMITS, task=task)
                for task in (FILL_MASK.of_bundle, CLASSIFY.of_bundle)
            ),
        ]

    def seeds(self) -> Iterator[bytes]:
        for body in (*FILL_BODIES, *SCORE_BODIES, *CLASSIFY_BODIES):
            yield json.dumps(body).encode()
            instances = body["inputs"] if isinstance(body["inputs"], list) else [body["inputs"]]
            rest = {name: value for name, value in body.items() if name == "parameters"}
            yield json.dumps({"instances": instances, **rest}).encode()
        for body in INFER_BODIES:
            yield json.dumps(body, ensure_ascii=False).encode()

    def check(self, data: bytes) -> None:
        check_parser(data)
        for read in self._readers:
            try:
                request = read(data)
            except FillMaskError as error:
                check_message(error.text)
                continue
            if len(request.asked().parameters) != len(request.texts):
                raise FindingError(f"{type(request).__name__}: parameters and texts differ")
        try:
            InferRequest.read(data, None, LIMITS, "fill-mask")
        except FillMaskError as error:
            check_message(error.text)


def check_parser(data: bytes) -> None:
    """Compare the strict parser with the standard library and with pydantic's parser.

    Raises:
        FindingError: the parsers disagree on the value or on whether the content is valid.
    """
    try:
        value = parse_json(data, "The body")
    except FillMaskError as error:
        check_message(error.text)
        if isinstance(error, InvalidRequestError):
            _check_refused_by_rule(data)
        elif _reads_strictly(data):
            raise FindingError(f"valid JSON is refused: {error.text}") from error
        return
    if not _same(json.loads(data), value):
        raise FindingError("the value differs from the standard library's")
    if _depth(data) < _JITER_MAX_DEPTH and not _same(from_json(data), value):
        raise FindingError("the value differs from pydantic's")


def _check_refused_by_rule(data: bytes) -> None:
    """Check that refused JSON has an unpaired surrogate or a duplicate field."""
    duplicates = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        duplicates.extend([0] * (len(pairs) - len(fields)))
        return fields

    try:
        json.dumps(json.loads(data, object_pairs_hook=collect), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        # the parser stops at a duplicate, before a later error of syntax
        return
    if not duplicates:
        raise FindingError("JSON without duplicates and unpaired surrogates is refused")


def _reads_strictly(data: bytes) -> bool:
    """Return whether pydantic's parser accepts JSON that the strict parser must accept too."""
    if data.startswith(b"\xef\xbb\xbf") or _DIGITS.search(data):
        return False
    try:
        from_json(data, allow_inf_nan=False)
    except ValueError:
        return False
    return True


def _depth(data: bytes) -> int:
    """Return an upper bound of the depth of a document."""
    return data.count(b"[") + data.count(b"{")


def _same(one: Any, other: Any) -> bool:
    """Return whether two parsed documents are equal, also in their types and signs of zero."""
    return repr(one) == repr(other)


TARGET = JsonBodies
