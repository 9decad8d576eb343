"""Requests to /classify: choice of the model, format of the response, limits and metrics."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fillmask.api import response_memory, routes, task_call
from fillmask.api.bodies.classify import ClassifyRequest
from fillmask.api.response_memory import MAX_RESPONSE_BYTES, label_memory_bytes
from fillmask.app import create_app
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import BatchOutputs
from fillmask.errors import InvalidRequestError
from fillmask.parameters.classify import ClassificationOptions
from fillmask.settings import Settings
from fillmask.tasks import event_loop
from fillmask.tasks.classification import ClassificationPipeline
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer
from tests.service.api.labels.bundles import LABELS, write_label_bundle
from tests.service.refusal import check_refusal
from tests.service.scrape import scrape, value

PAIR = {"text": "the cat sat", "text_pair": "the dog lay by the door"}


def labels_of(client: TestClient, path: str, inputs: object, **parameters: object) -> Any:
    """Return the response to a classification request, which must succeed."""
    answer = client.post(path, json={"inputs": inputs, "parameters": parameters})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def test_a_single_text_has_a_list_with_one_list(client: TestClient) -> None:
    [labels] = labels_of(client, "/classify", "the cat")
    assert {label["label"] for label in labels} == set(LABELS)
    assert all(set(label) == {"label", "score"} for label in labels)
    assert sum(label["score"] for label in labels) == pytest.approx(1)
    scores = [label["score"] for label in labels]
    assert scores == sorted(scores, reverse=True)
    assert labels_of(client, "/classify", {"text": "the cat"}) == [labels]
    assert labels_of(client, "/classify", ["the cat"]) == [labels]
    assert labels_of(client, "/classify", "the cat", top_k=None, function_to_apply=None) == [labels]
    [other] = labels_of(client, "/classify", PAIR)
    assert other != labels


@pytest.mark.parametrize(
    ("path", "task"),
    [
        ("/classify", ""),
        ("/models/both/classify", ""),
        ("/models/labels", '; model "labels" has the task text-classification (POST /classify)'),
    ],
)
def test_options_of_hugging_face_have_no_effect(path: str, task: str, client: TestClient) -> None:
    body = {"inputs": "the cat", "options": {"wait_for_model": True, "use_cache": False}}
    assert client.post(path, json=body).json() == [labels_of(client, path, "the cat")[0]]
    answer = client.post(path, json={"inputs": "the cat", "options": {"use_tpu": True}})
    check_refusal(
        answer,
        422,
        f'Unknown field "use_tpu" in options; allowed: use_cache, wait_for_model, use_gpu{task}.',
    )


def test_each_text_may_have_its_parameters(client: TestClient) -> None:
    body = {
        "inputs": ["the cat", PAIR, "the dog"],
        "parameters": [{"top_k": 1}, None, {"function_to_apply": "none", "top_k": 2.0}],
    }
    first, second, third = client.post("/classify", json=body).json()
    assert [len(first), len(second), len(third)] == [1, 3, 2]
    assert second == labels_of(client, "/classify", PAIR)[0]
    assert [third] == labels_of(client, "/classify", "the dog", function_to_apply="none", top_k=2)


def test_the_functions(client: TestClient) -> None:
    scores = {
        function: {
            label["label"]: label["score"]
            for label in labels_of(client, "/classify", PAIR, function_to_apply=function)[0]
        }
        for function in ("none", "softmax", "sigmoid")
    }
    logits = np.array([scores["none"][label] for label in LABELS])
    softmax = np.exp(logits) / np.exp(logits).sum()
    assert [scores["softmax"][label] for label in LABELS] == pytest.approx(softmax)
    sigmoid = 1 / (1 + np.exp(-logits))
    assert [scores["sigmoid"][label] for label in LABELS] == pytest.approx(sigmoid)


@pytest.mark.parametrize(("function", "scores"), [("softmax", [1, 0, 0]), ("sigmoid", [1, 0.5, 0])])
def test_large_logits_do_not_overflow(
    function: str, scores: list[float], client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    batcher = client.app.state.models.get("labels").batcher  # type: ignore[attr-defined]
    run = batcher._run

    def enlarge_logits(batch: Batch) -> BatchOutputs:
        outputs: BatchOutputs = run(batch)
        outputs.label_logits[:] = [1e6, 0, -1e6]
        return outputs

    monkeypatch.setattr(batcher, "_run", enlarge_logits)
    [found] = labels_of(client, "/classify", "the", function_to_apply=function)
    assert [one["score"] for one in found] == scores


def test_the_path_chooses_the_model(client: TestClient, bundles: Path) -> None:
    # Without a model name in the path, the first model with the task responds.
    expected = labels_of(client, "/models/labels/classify", PAIR)
    assert labels_of(client, "/classify", PAIR) == expected
    assert labels_of(client, "/models/labels", PAIR) == expected
    masked = {"inputs": "the [MASK]"}
    assert client.post("/", json=masked).json() == client.post("/fill-mask", json=masked).json()
    fills = client.post("/models/both", json=masked)
    assert fills.json()[0]["token_str"]
    settings = Settings(bundle=bundles, threads=1, model="labels")
    with TestClient(create_app(settings)) as other:
        assert labels_of(other, "/", PAIR) == expected
        assert other.post("/fill-mask", json=masked).json() == (
            client.post("/fill-mask", json=masked).json()
        )


def test_the_models_are_described(client: TestClient) -> None:
    models = client.get("/models").json()
    assert [
        (model["name"], model["tasks"], model["pairs"], model["labels"], model["problem_type"])
        for model in models
    ] == [
        ("tiny", ["fill-mask"], False, None, None),
        *(
            (name, tasks, True, list(LABELS), "single_label_classification")
            for name, tasks in (
                ("labels", ["text-classification"]),
                ("both", ["fill-mask", "text-classification"]),
            )
        ),
    ]


def test_requests_are_counted_by_route(client: TestClient) -> None:
    def counts() -> list[float]:
        scraped = scrape(client)
        return [
            value(scraped, "fillmask_requests_total", method="POST", route=route, status=status)
            for route, status in (
                ("/classify", "200"),
                ("/classify", "422"),
                ("/models/{name}/classify", "200"),
            )
        ]

    before = counts()
    labels_of(client, "/classify", "the cat")
    assert client.post("/classify", json={"inputs": 5}).status_code == 422
    labels_of(client, "/models/both/classify", "the cat")
    assert np.subtract(counts(), before).tolist() == [1, 1, 1]


def test_before_the_models_are_loaded(labels: Path) -> None:
    client = TestClient(create_app(Settings(bundle=labels)))
    for path in ("/classify", "/models/labels/classify"):
        assert client.post(path, json={"inputs": "the"}).status_code == 503


def test_overload_is_429_with_retry_after(labels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(Settings(bundle=labels, threads=1))
    with TestClient(app) as client:
        admission = app.state.models.default.batcher._admission
        monkeypatch.setattr(admission, "_accepted", admission._max_tokens)
        for path in ("/classify", "/models/labels/classify"):
            answer = client.post(path, json={"inputs": "the"})
            assert answer.status_code == 429
            seconds = answer.headers["Retry-After"]
            assert answer.json()["error"] == (
                f"The service is overloaded; try again in {seconds} s."
            )


def test_a_late_response_has_504(labels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(Settings(bundle=labels, threads=1))
    with TestClient(app) as client:
        held = threading.Event()
        batcher = app.state.models.default.batcher
        run = batcher._run

        def wait(batch: Batch) -> BatchOutputs:
            assert held.wait(20)
            outputs: BatchOutputs = run(batch)
            return outputs

        monkeypatch.setattr(batcher, "_run", wait)
        headers = {"X-Request-Timeout-Ms": "30"}
        answer = client.post("/classify", json={"inputs": "the"}, headers=headers)
        held.set()
        assert answer.status_code == 504


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("function", ["softmax", "sigmoid", "none"])
def test_a_wrong_logit_is_an_internal_error(
    wrong: float, function: str, labels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(Settings(bundle=labels, threads=1))
    with TestClient(app) as client:
        batcher = app.state.models.default.batcher
        run = batcher._run

        def break_logits(batch: Batch) -> BatchOutputs:
            outputs: BatchOutputs = run(batch)
            outputs.label_logits[0, 1] = wrong
            return outputs

        monkeypatch.setattr(batcher, "_run", break_logits)
        body = {"inputs": "the", "parameters": {"function_to_apply": function}}
        answer = client.post("/classify", json=body)
        assert answer.status_code == 500
        assert " the request id " in answer.json()["error"]
        assert "the model returns NaN or infinity" not in answer.text


STEPS = {
    "parse": (ClassifyRequest, "read"),
    "encode": (Tokenizer, "encode"),
    "rank": (ClassificationPipeline, "_rank"),
    "write": (routes, "labels_to_json"),
}


def test_only_long_steps_leave_the_event_loop(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: dict[str, bool] = {}

    def spy(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: object, **named: object) -> object:
            where[step] = threading.current_thread().name.startswith("fillmask-long-work")
            return function(*arguments, **named)

        return call

    for step, (owner, name) in STEPS.items():
        monkeypatch.setattr(owner, name, spy(step, getattr(owner, name)))

    def moved(inputs: object, padding: int = 0) -> set[str]:
        content = json.dumps({"inputs": inputs}).encode() + b" " * padding
        headers = {"content-type": "application/json"}
        assert client.post("/classify", content=content, headers=headers).is_success
        assert where.keys() == STEPS.keys()
        return {step for step, is_moved in where.items() if is_moved}

    assert moved("the") == set()
    assert moved("the", task_call.LONG_BODY_BYTES) == {"parse"}
    half = " " * (LONG_TEXT_CHARS // 2)
    assert moved({"text": f"{half}the", "text_pair": f"{half}cat"}) == {"encode"}
    monkeypatch.setattr(event_loop, "LARGE_RANKING", 5)
    assert moved(["the"]) == set()
    assert moved(["the", PAIR]) == {"rank", "write"}


@pytest.fixture(scope="module")
def many_labels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Client of a service with 3,000 labels of about 600 bytes each, for large responses."""
    names = [f"{i} {'語' * 200}" for i in range(3000)]
    path = tmp_path_factory.mktemp("many") / "many"
    write_label_bundle(path, fills=False, labels=names)
    with TestClient(create_app(Settings(bundle=path, threads=1))) as test_client:
        yield test_client


def test_the_largest_response_is_bounded(many_labels: TestClient) -> None:
    answer = many_labels.post("/classify", json={"inputs": ["the"] * 2})
    size_bytes = len(answer.content)
    assert [len(labels) for labels in answer.json()] == [3000, 3000]
    texts = 3 * MAX_RESPONSE_BYTES // size_bytes
    answer = many_labels.post("/classify", json={"inputs": ["the"] * texts})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error.startswith("The response could have ")
    assert error.endswith(
        f" bytes; the limit is {MAX_RESPONSE_BYTES}. Use fewer texts or a smaller top_k."
    )
    body = {"inputs": ["the"] * texts, "parameters": {"top_k": 20}}
    assert [len(one) for one in many_labels.post("/classify", json=body).json()] == [20] * texts


@pytest.mark.parametrize(("texts", "top_k"), [(1, None), (2, None), (40, 100), (60, 1)])
async def test_the_response_takes_no_more_memory_than_estimated(
    texts: int, top_k: int | None, many_labels: TestClient
) -> None:
    # The estimated size of the JSON is an upper bound, which is at most a quarter too high.
    pipeline = many_labels.app.state.models.default.pipelines.classification  # type: ignore[attr-defined]
    planned = await pipeline.plan(["the"] * texts, [ClassificationOptions(top_k)] * texts)
    memory_bytes = label_memory_bytes(planned)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(response_memory, "MAX_RESPONSE_BYTES", 0)
        with pytest.raises(InvalidRequestError, match=" bytes; the limit is 0") as caught:
            label_memory_bytes(planned)
    estimate = int(caught.value.text.split()[4])
    body = {"inputs": ["the"] * texts, "parameters": {"top_k": top_k}}
    answer = many_labels.post("/classify", json=body)
    assert answer.status_code == 200
    assert len(answer.content) <= estimate + 3 * texts + 2 < 1.25 * len(answer.content) + 200
    assert memory_bytes > 2 * len(answer.content)


def test_a_response_without_room_is_not_computed(
    many_labels: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Batcher, "submit", lambda *_, **__: pytest.fail("submitted"))
    monkeypatch.setattr(task_call, "label_memory_bytes", lambda _: 2**40)
    for path, body in (
        ("/classify", {"inputs": "the"}),
        ("/v1/models/many:predict", {"instances": ["the"]}),
    ):
        answer = many_labels.post(path, json=body)
        check_refusal(
            answer,
            429,
            "The memory for request bodies and responses is full; try again in 1 s.",
        )
