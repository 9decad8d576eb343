"""Bodies of the Open Inference Protocol with binary tensors after the JSON."""

import json
import struct
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from fillmask.api.wire.open_inference.infer_request import InferRequest
from fillmask.bundles.description import Task
from fillmask.errors import FillMaskError
from fillmask.parameters.texts import TextPair
from fillmask.tasks.task import FILL_MASK
from tests.fuzzing.target import FindingError, MutateBytes, Target, check_message
from tests.fuzzing.targets.json_bodies import INFER_BODIES, LIMITS, JsonBodies

_TASKS: tuple[Task, ...] = ("fill-mask", "text-classification")
_NO_HEADER = b"-"
_LENGTH = struct.Struct("<I")


class BinaryBodies(Target):
    """A body and the length of its JSON.

    The first line of an input is the header Inference-Header-Content-Length. The line `-` means a
    request without this header.
    """

    more_words = JsonBodies.more_words

    def seeds(self) -> Iterator[bytes]:
        for body in INFER_BODIES:
            yield _join(body, b"", header=False)
            tail = b""
            inputs = []
            for tensor in body["inputs"]:
                data = tensor["data"]
                content = b"".join(map(_element, data[0] if isinstance(data[0], list) else data))
                described = {name: value for name, value in tensor.items() if name != "data"}
                described["parameters"] = {"binary_data_size": len(content)}
                inputs.append(described)
                tail += content
            yield _join(body | {"inputs": inputs}, tail)

    def check(self, data: bytes) -> None:
        header, _, body = data.partition(b"\n")
        json_bytes = None if header == _NO_HEADER else header.decode("latin-1")
        for task in _TASKS:
            try:
                request = InferRequest.read(body, json_bytes, LIMITS, task)
            except FillMaskError as error:
                check_message(error.text)
                continue
            _check_texts(request, body, json_bytes)

    def mutate(self, data: bytes, draw: Random, mutate_bytes: MutateBytes) -> bytes:
        """Return an input with other JSON, other tensors or another header.

        The header and the sizes in the JSON mostly stay right.
        """
        header, _, body = data.partition(b"\n")
        length = int(header) if header.isdigit() and len(header) < 8 else len(body)
        head, tail = body[:length], body[length:]
        kind = draw.random()
        if kind < 0.05:
            return mutate_bytes(data)
        if kind < 0.55 or header == _NO_HEADER:
            head = super().mutate(head, draw, mutate_bytes)
        elif kind < 0.7:
            tail = mutate_bytes(tail)
        else:
            changed = _with_new_tensor(head, tail, draw)
            head, tail = changed or (head, mutate_bytes(tail))
        if header == _NO_HEADER:
            return b"%b\n%b" % (header, head)
        shown = draw.randrange(2 * len(head) + 1) if draw.random() < 0.05 else len(head)
        return b"%d\n%b%b" % (shown, head, tail)


def _element(text: str) -> bytes:
    return _LENGTH.pack(len(text.encode())) + text.encode()


def _join(body: dict[str, Any], tail: bytes, *, header: bool = True) -> bytes:
    head = json.dumps(body).encode()
    return b"%b\n%b%b" % (b"%d" % len(head) if header else _NO_HEADER, head, tail)


def _with_new_tensor(head: bytes, tail: bytes, draw: Random) -> tuple[bytes, bytes] | None:
    """Return the JSON and the tensors with other texts in the last tensor, of the right size."""
    try:
        body = json.loads(head)
        sizes = [tensor["parameters"]["binary_data_size"] for tensor in body["inputs"]]
        kept = tail[: sum(sizes[:-1])]
        texts = [draw.choice(("", "a", "[MASK]", "é😀")) for _ in range(draw.randrange(5))]
        content = b"".join(map(_element, texts))
        body["inputs"][-1]["shape"] = [len(texts)]
        body["inputs"][-1]["parameters"]["binary_data_size"] = len(content)
        return json.dumps(body).encode(), kept + content
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _check_texts(request: InferRequest, body: bytes, json_bytes: str | None) -> None:
    """Compare the texts with those of a plain reading of an accepted body."""
    length = len(body) if json_bytes is None else int(json_bytes)
    parsed, tail = json.loads(body[:length]), body[length:]
    tensors = {}
    for tensor in parsed["inputs"]:
        size = (tensor.get("parameters") or {}).get("binary_data_size")
        if size is None:
            rows = tensor["data"]
            texts = [text for row in rows for text in (row if isinstance(row, list) else [row])]
        else:
            content, tail = tail[: int(size)], tail[int(size) :]
            texts = list(_texts_of(content))
        tensors[tensor["name"]] = texts
    seconds = tensors.get("text_pair")
    with_texts = tensors.keys() - {"text_pair"}
    if request.body.task is FILL_MASK:
        with_texts -= {"targets"}
    expected: Sequence[Any] = tensors[with_texts.pop()]
    if seconds is not None:
        expected = [
            TextPair(first, second) for first, second in zip(expected, seconds, strict=True)
        ]
    if request.body.texts != expected or tail:
        raise FindingError(f"the texts are {request.body.texts!r} instead of {expected!r}")


def _texts_of(content: bytes) -> Iterator[str]:
    while content:
        (length,) = _LENGTH.unpack(content[:4])
        yield content[4 : 4 + length].decode()
        content = content[4 + length :]


TARGET = BinaryBodies
