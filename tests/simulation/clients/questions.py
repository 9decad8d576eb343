"""Requests that clients send, and what a quiet service answers to them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

from tests.service.tiny import WORDS

_MASK = "[MASK]"
_PLAIN = [word for word in WORDS if word.isalpha()]


@dataclass(frozen=True, slots=True)
class Question:
    """A request that clients send again and again.

    Attributes:
        model: name of the model that answers.
        light: True for a short plain fill, as most interactive requests are.
        bulk: True if the request needs many passes or a long response.
        answers: status and body of a quiet service, by the salt of the model.
    """

    label: str
    path: str
    body: bytes
    model: str
    method: str = "POST"
    light: bool = False
    bulk: bool = False
    answers: dict[int, tuple[int, bytes]] = field(default_factory=dict)


@cache
def questions() -> list[Question]:
    """Return all requests, which are the same in each process."""
    random = Random("questions")
    found = [*_fills(random), *_lists(random), *_scores(random), *_labels(random)]
    found += [*_long(random), *_other_protocols(random), *_refused()]
    return [replace(one, label=f"{number}:{one.label}") for number, one in enumerate(found)]


@cache
def by_kind() -> dict[str, list[Question]]:
    """Return all requests by the kind in their label."""
    kinds: dict[str, list[Question]] = {}
    for one in questions():
        kinds.setdefault(one.label.partition(":")[2], []).append(one)
    return kinds


HEALTH = Question("health", "/health/ready", b"", "alpha", method="GET")


def _text(random: Random, masks: int = 1, most: int = 12) -> str:
    words = [random.choice(_PLAIN) for _ in range(random.randint(2, most))]
    for _ in range(masks):
        words.insert(random.randrange(len(words) + 1), _MASK)
    return " ".join(words)


def _post(label: str, path: str, body: Any, model: str = "alpha", **more: Any) -> Question:
    return Question(label, path, json.dumps(body).encode(), model, **more)


def _fills(random: Random) -> Iterator[Question]:
    for _ in range(60):
        model = random.choice(["alpha", "alpha", "beta"])
        path = "/fill-mask" if model == "alpha" else "/models/beta"
        body = {"inputs": _text(random), "parameters": {"top_k": random.randint(1, 5)}}
        yield _post("fill", path, body, model, light=True)
    for _ in range(20):
        options: dict[str, Any] = {"strategy": "joint", "top_k": random.randint(1, 3)}
        if random.random() < 0.5:
            options["order"] = "left_to_right"
        text = _text(random, random.randint(2, 4))
        yield _post("joint", "/fill-mask", {"inputs": text, "parameters": options}, bulk=True)
    for _ in range(10):
        options = {"granularity": "word", "max_word_tokens": random.randint(1, 3)}
        yield _post(
            "word", "/fill-mask", {"inputs": _text(random), "parameters": options}, bulk=True
        )
    for _ in range(20):
        targets = random.sample([*_PLAIN, "walks", "walking", "runs", "teas"], 4)
        body = {"inputs": _text(random, random.randint(1, 2)), "parameters": {"targets": targets}}
        yield _post("targets", "/models/beta", body, "beta")


def _lists(random: Random) -> Iterator[Question]:
    for _ in range(15):
        texts = [_text(random, random.randint(1, 2)) for _ in range(random.randint(2, 8))]
        yield _post("list", "/fill-mask", {"inputs": texts})
    for _ in range(10):  # texts of different options, which run concurrently
        options = [
            {"strategy": "joint"},
            {"targets": ["paris", "walking"]},
            {"granularity": "word", "max_word_tokens": 2},
            {"top_k": 3},
        ]
        random.shuffle(options)
        body = {"inputs": [_text(random, 2) for _ in options], "parameters": options}
        yield _post("mixed", "/fill-mask", body, bulk=True)
    for _ in range(5):
        texts = [_text(random), "no gap", _text(random)]
        yield _post("report", "/fill-mask", {"inputs": texts, "on_error": "report"})


def _scores(random: Random) -> Iterator[Question]:
    for _ in range(20):
        texts = [_text(random, 0, 20) for _ in range(random.randint(1, 4))]
        yield _post("score", "/score", {"inputs": texts}, bulk=True)
    for _ in range(5):
        yield _post("score", "/models/beta/score", {"inputs": _text(random, 0)}, "beta", bulk=True)


def _labels(random: Random) -> Iterator[Question]:
    for _ in range(15):
        texts = [_text(random, 0) for _ in range(random.randint(1, 5))]
        yield _post("labels", "/classify", {"inputs": texts})


def _long(random: Random) -> Iterator[Question]:
    for words in (300, 300, 500, 700):  # windows, tokenized on another thread
        text = " ".join(
            _MASK if place % 100 == 50 else random.choice(_PLAIN) for place in range(words)
        )
        options = {"on_long_text": "window", "top_k": 20}
        body = {"inputs": text, "parameters": options}
        yield _post("window", "/fill-mask", body, bulk=True)
    many = [_text(random, 1, 25) for _ in range(30)]
    yield _post("many", "/models/beta", {"inputs": many, "parameters": {"top_k": 20}}, "beta")
    pairs = [" ".join(random.choices(_PLAIN, k=24)) for _ in range(12)]
    yield _post("many", "/score", {"inputs": pairs}, bulk=True)


def _other_protocols(random: Random) -> Iterator[Question]:
    for _ in range(5):
        body = {"instances": [_text(random), _text(random)]}
        yield _post("v1", "/v1/models/beta:predict", body, "beta")
        tensor = {"name": "text", "shape": [2], "datatype": "BYTES"}
        texts = [_text(random), _text(random)]
        yield _post("v2", "/v2/models/alpha/infer", {"inputs": [{**tensor, "data": texts}]})


def _refused() -> Iterator[Question]:
    yield _post("no mask", "/fill-mask", {"inputs": "paris is"})
    yield _post("too long", "/fill-mask", {"inputs": f"{_MASK} " + "paris " * 200})
    yield _post("unknown", "/models/gamma", {"inputs": _MASK})
    yield _post("bad option", "/fill-mask", {"inputs": _MASK, "parameters": {"topk": 2}})
    yield _post("no task", "/models/beta/classify", {"inputs": "paris"}, "beta")
    yield Question("not JSON", "/fill-mask", b"{", "alpha")
    yield Question("no path", "/fills", b"{}", "alpha")
    yield Question("too large", "/fill-mask", b"x" * 70_000, "alpha")
    yield _post("passes", "/score", {"inputs": ["paris is the city of france"] * 60})
