"""Classification and pairs over the Open Inference Protocol and V1."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.http as triton
from fastapi.testclient import TestClient
from tritonclient.utils import InferenceServerException

from tests.service.api.labels.bundles import LABELS
from tests.service.api.protocols.test_open_inference import tensor, texts_of

pytestmark = pytest.mark.processes
TEXTS = ["the cat sat on the mat", "one day"]
SECONDS = ["the dog lay by the door", "the old fox"]
CLASSIFY = {"task": "text-classification"}


@pytest.fixture(scope="module")
def server(labels_url: str) -> str:
    """Host and port of a running service."""
    return labels_url.removeprefix("http://")


@pytest.fixture
def client_of_triton(server: str) -> Iterator[Any]:
    """Client from Triton's Python package, connected to the service."""
    connected = triton.InferenceServerClient(server)
    yield connected
    connected.close()


def expected_labels(server: str, name: str, inputs: object, **parameters: object) -> Any:
    answer = httpx.post(
        f"http://{server}/models/{name}/classify",
        json={"inputs": inputs, "parameters": parameters},
    )
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(
    ("name", "task"), [("labels", {}), ("labels", CLASSIFY), ("both", CLASSIFY)]
)
def test_labels(
    client_of_triton: Any, server: str, name: str, task: Any, *, pairs: bool, binary: bool
) -> None:
    # Each output has one row per text, with the labels that /classify returns.
    seconds = [tensor("text_pair", SECONDS, binary=binary)] * pairs
    result = client_of_triton.infer(
        name,
        [*seconds, tensor("text", TEXTS, binary=binary)],
        parameters={"top_k": 2, "function_to_apply": "sigmoid", **task},
        outputs=[
            triton.InferRequestedOutput(output, binary_data=binary) for output in ("label", "score")
        ],
    )
    inputs: list[Any] = list(TEXTS)
    if pairs:
        inputs = [
            {"text": text, "text_pair": second} for text, second in zip(TEXTS, SECONDS, strict=True)
        ]
    expected = expected_labels(server, name, inputs, top_k=2, function_to_apply="sigmoid")
    assert texts_of(result, "label") == [[one["label"] for one in row] for row in expected]
    scores = [[one["score"] for one in row] for row in expected]
    np.testing.assert_allclose(result.as_numpy("score"), scores, rtol=1e-6)
    assert result.as_numpy("score").dtype == np.float32


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("task", [{}, {"task": "fill-mask"}, {"task": None}])
def test_fills_of_pairs(client_of_triton: Any, server: str, task: Any, *, binary: bool) -> None:
    # A model with both tasks fills masks by default.
    masked = [f"{text} [MASK]" for text in TEXTS]
    result = client_of_triton.infer(
        "both",
        [tensor("text", masked, binary=binary), tensor("text_pair", SECONDS, binary=binary)],
        parameters={"top_k": 3, **task},
    )
    inputs = [
        {"text": text, "text_pair": second} for text, second in zip(masked, SECONDS, strict=True)
    ]
    expected = httpx.post(
        f"http://{server}/models/both", json={"inputs": inputs, "parameters": {"top_k": 3}}
    ).json()
    assert result.as_numpy("token").tolist() == [[one["token"] for one in row] for row in expected]
    assert texts_of(result, "sequence") == [[one["sequence"] for one in row] for row in expected]


def test_metadata_has_the_tensors_of_the_tasks(client_of_triton: Any) -> None:
    fills = ["text_index", "token", "token_str", "score", "sequence"]
    for name, inputs, outputs in (
        ("tiny", ["text", "targets"], fills),
        ("labels", ["text", "text_pair"], ["label", "score"]),
        ("both", ["text", "text_pair", "targets"], [*fills, "label"]),
    ):
        model = client_of_triton.get_model_metadata(name)
        assert [one["name"] for one in model["inputs"]] == inputs
        assert [one["name"] for one in model["outputs"]] == outputs


def test_errors_reach_the_client(client_of_triton: Any) -> None:
    for name, parameters, message in (
        ("tiny", CLASSIFY, 'Model "tiny" does not have the task text-classification; use a'),
        ("labels", {"task": "fill-mask"}, "does not have the task fill-mask"),
        ("both", {"function_to_apply": "none"}, 'Unknown field "function_to_apply" in parameters'),
        ("labels", {"top_k": 0}, "top_k must be a whole number of at least 1"),
    ):
        inputs = [tensor("text", ["the [MASK]"], binary=True)]
        with pytest.raises(InferenceServerException, match=message) as caught:
            client_of_triton.infer(name, inputs, parameters=parameters)
        assert caught.value.status() == "422"


def body(*names: str, data: Any = ("the [MASK]",), **fields: Any) -> dict[str, Any]:
    """Return a request with one tensor per name."""
    tensors = [
        {"name": name, "shape": [len(data)], "datatype": "BYTES", "data": list(data)}
        for name in names
    ]
    return {"inputs": tensors, **fields}


PAIRED = body("text", "text_pair")
PAIRED["inputs"][1] |= {"data": ["a", "b"], "shape": [2]}
BLANK = body("text", "text_pair")
BLANK["inputs"][1] |= {"data": [" "]}


@pytest.mark.parametrize(
    ("name", "request_body", "reason"),
    [
        (
            "both",
            PAIRED,
            'The input "text_pair" must have one text per text of "text", 1 in total (got 2).',
        ),
        ("both", BLANK, 'text[0].text_pair must be a non-blank text (got " ").'),
        ("tiny", body("text", "text_pair"), "text is a pair, but this model reads only single"),
        (
            "both",
            body("text_pair"),
            (
                'inputs must have one tensor of texts and optionally a tensor "text_pair" and a '
                'tensor "targets" (got tensors of texts: 0).'
            ),
        ),
        (
            "labels",
            body("text", "targets"),
            (
                'inputs must have one tensor of texts and optionally a tensor "text_pair" '
                "(got tensors of texts: 2)."
            ),
        ),
        (
            "both",
            body("text", parameters={"task": "score"}),
            'parameters.task must be fill-mask or text-classification (got "score").',
        ),
        (
            "labels",
            body("text", outputs=[{"name": "token"}]),
            'Unknown output "token"; allowed: label, score.',
        ),
        (
            "labels",
            body("text", data=["the"] * 5),
            "text must have at most 4 texts (got 5); send fewer or raise FILLMASK_MAX_TEXTS.",
        ),
    ],
)
def test_bad_requests(client: TestClient, name: str, request_body: Any, reason: str) -> None:
    answer = client.post(f"/v2/models/{name}/infer", json=request_body)
    assert answer.status_code == 422
    assert reason in answer.json()["error"]


def test_v1_runs_the_first_task(client: TestClient) -> None:
    pair = {"text": "the [MASK]", "text_pair": "the dog"}
    for name in ("labels", "both"):
        answer = client.post(f"/v1/models/{name}:predict", json={"instances": ["the [MASK]", pair]})
        expected = client.post(f"/models/{name}", json={"inputs": ["the [MASK]", pair]})
        assert answer.json() == {"predictions": expected.json()}
    parameters = {"top_k": 1, "function_to_apply": "none"}
    request_body = {"instances": ["the"], "parameters": parameters}
    [[label]] = client.post("/v1/models/labels:predict", json=request_body).json()["predictions"]
    assert label["label"] in LABELS
    answer = client.post("/v1/models/both:predict", json=request_body)
    assert answer.status_code == 422
