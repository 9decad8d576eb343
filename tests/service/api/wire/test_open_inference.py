"""Requests of the Open Inference Protocol v2, sent by Triton's client or as plain JSON."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.http as triton
from fastapi.testclient import TestClient
from numpy.typing import NDArray
from tritonclient.http import aio
from tritonclient.utils import InferenceServerException

from fillmask import __version__
from fillmask.api.wire.open_inference.infer_request import InferRequest
from fillmask.api.wire.open_inference.infer_response import response_to
from fillmask.parameters.limits import Limits
from fillmask.tasks.fill_mask.results import Fill, TextFills
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes

TEXTS = ["Paris is the [MASK] of France.", "The [MASK] barked at the [MASK]."]
NAMES = ["text_index", "token", "token_str", "score", "sequence"]
INFER = "/v2/models/tiny/infer"
LIMITS = Limits(
    max_tokens=32, max_texts=3, max_masks=5, max_top_k=9, max_passes=2, max_body_bytes=1000
)


@pytest.fixture(scope="module")
def server(labels_url: str) -> str:
    """Host and port of a running service with all models."""
    return labels_url.removeprefix("http://")


@pytest.fixture
def client_of_triton(server: str) -> Iterator[triton.InferenceServerClient]:
    """Client from Triton's Python package, connected to the service."""
    client = triton.InferenceServerClient(server)
    yield client
    client.close()


def tensor(name: str, texts: list[str], *, binary: bool, shape: list[int] | None = None) -> Any:
    """Return a tensor of texts as an input of Triton's client."""
    values: NDArray[np.object_] = np.array(texts, dtype=np.object_).reshape(shape or [len(texts)])
    made = triton.InferInput(name, list(values.shape), "BYTES")
    made.set_data_from_numpy(values, binary_data=binary)
    return made


def texts_of(result: Any, name: str) -> list[list[str]]:
    """Return the texts of an output, which are bytes in binary data and strings in JSON."""
    rows = result.as_numpy(name).tolist()
    return [[v.decode() if isinstance(v, bytes) else v for v in row] for row in rows]


def test_the_server_and_the_model_are_described(client_of_triton: Any) -> None:
    assert client_of_triton.is_server_live()
    assert client_of_triton.is_server_ready()
    assert client_of_triton.is_model_ready("tiny")
    assert client_of_triton.is_model_ready("tiny", "1")
    assert not client_of_triton.is_model_ready("other")
    assert not client_of_triton.is_model_ready("tiny", "2")
    server = client_of_triton.get_server_metadata()
    assert server == {
        "name": "fillmask",
        "version": __version__,
        "extensions": ["binary_tensor_data"],
    }
    model = client_of_triton.get_model_metadata("tiny", "1")
    assert model["name"] == "tiny"
    assert model["versions"] == ["1"]
    for name, inputs, outputs in (
        ("tiny", ["text", "targets"], NAMES),
        ("labels", ["text", "text_pair"], ["label", "score"]),
        ("both", ["text", "text_pair", "targets"], [*NAMES, "label"]),
        ("splade", ["text"], []),
    ):
        model = client_of_triton.get_model_metadata(name)
        assert [one["name"] for one in model["inputs"]] == inputs
        assert [one["name"] for one in model["outputs"]] == outputs
    listed, *_ = client_of_triton.get_model_repository_index()
    assert listed == {"name": "tiny", "version": "1", "state": "READY", "reason": ""}
    with pytest.raises(InferenceServerException, match='Unknown model "other"; use a served'):
        client_of_triton.get_model_metadata("other")


def test_missing_extensions_name_a_replacement(client_of_triton: Any) -> None:
    for request, reason in (
        (client_of_triton.get_model_config, "use GET /v2/models/tiny for the tensors"),
        (client_of_triton.get_inference_statistics, "use GET /metrics for the counts"),
    ):
        with pytest.raises(InferenceServerException, match=reason) as caught:
            request("tiny", "1")
        assert caught.value.status() == "404"
        with pytest.raises(InferenceServerException, match='Unknown model "other"; use a served'):
            request("other")
    with pytest.raises(InferenceServerException, match="use GET /metrics for the counts"):
        client_of_triton.get_inference_statistics()


async def test_asynchronous_client(server: str) -> None:
    # Concurrent requests in JSON and in binary get the fills that /fill-mask returns.
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"http://{server}/fill-mask", json={"inputs": TEXTS})
    one, two = answer.json()
    async with aio.InferenceServerClient(server) as client:
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready("tiny", "1")
        assert (await client.get_model_metadata("tiny"))["name"] == "tiny"
        results = await asyncio.gather(
            *(
                client.infer("tiny", [tensor("text", [text], binary=binary)])
                for text in TEXTS
                for binary in (False, True)
            )
        )
        with pytest.raises(InferenceServerException, match="text has no mask; write") as caught:
            await client.infer("tiny", [tensor("text", ["No mask."], binary=True)])
        assert caught.value.status() == "422"
    found = [result.as_numpy("token").tolist() for result in results]
    assert found == [
        [[fill["token"] for fill in mask] for mask in masks] for masks in ([one], [one], two, two)
    ]


@pytest.mark.parametrize(("binary_in", "binary_out"), [(False, True), (True, False)])
def test_infer(client_of_triton: Any, server: str, *, binary_in: bool, binary_out: bool) -> None:
    # An output tensor has one row per mask, with the fills that /fill-mask returns.
    result = client_of_triton.infer(
        "tiny",
        [tensor("text", TEXTS, binary=binary_in)],
        request_id="seven",
        parameters={"top_k": 3},
        outputs=[triton.InferRequestedOutput(name, binary_data=binary_out) for name in NAMES],
    )
    response = result.get_response()
    assert response["id"] == "seven"
    assert response["model_name"] == "tiny"
    assert response["model_version"] == "1"
    expected = httpx.post(
        f"http://{server}/fill-mask", json={"inputs": TEXTS, "parameters": {"top_k": 3}}
    ).json()
    masks = [expected[0], *expected[1]]
    assert result.as_numpy("text_index").tolist() == [0, 1, 1]
    assert result.as_numpy("token").tolist() == [[fill["token"] for fill in m] for m in masks]
    scores = [[fill["score"] for fill in mask] for mask in masks]
    np.testing.assert_allclose(result.as_numpy("score"), scores, rtol=1e-6)
    for name in ("token_str", "sequence"):
        assert texts_of(result, name) == [[fill[name] for fill in mask] for mask in masks]


@pytest.mark.parametrize("binary", [False, True])
def test_targets_are_a_second_tensor(client_of_triton: Any, *, binary: bool) -> None:
    # The tensors of texts and of targets may be in either order.
    inputs = [
        tensor("targets", ["city", "capital"], binary=binary),
        tensor("text", TEXTS[:1], binary=binary, shape=[1, 1]),
    ]
    result = client_of_triton.infer("tiny", inputs)
    assert sorted(texts_of(result, "token_str")[0]) == ["capital", "city"]
    assert [output["name"] for output in result.get_response()["outputs"]] == NAMES


def test_only_what_is_asked_for_is_sent(client_of_triton: Any) -> None:
    # The outputs are in the requested order.
    outputs = [triton.InferRequestedOutput(name) for name in ("score", "token_str")]
    result = client_of_triton.infer("tiny", [tensor("t", TEXTS, binary=True)], outputs=outputs)
    assert [output["name"] for output in result.get_response()["outputs"]] == ["score", "token_str"]
    assert result.as_numpy("token") is None


PLAIN = ["the cat sat on the mat", "one day"]
SECONDS = ["the dog lay by the door", "the old fox"]
CLASSIFY = {"task": "text-classification"}


def expected_labels(server: str, name: str, inputs: object, **parameters: object) -> Any:
    answer = httpx.post(
        f"http://{server}/models/{name}/classify",
        json={"inputs": inputs, "parameters": parameters},
    )
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.parametrize(
    ("name", "task", "pairs", "binary"),
    [
        ("labels", {}, False, False),
        ("labels", CLASSIFY, True, True),
        ("both", CLASSIFY, True, False),
    ],
)
def test_labels(
    client_of_triton: Any, server: str, name: str, task: Any, *, pairs: bool, binary: bool
) -> None:
    # Each output has one row per text, with the labels that /classify returns.
    seconds = [tensor("text_pair", SECONDS, binary=binary)] * pairs
    result = client_of_triton.infer(
        name,
        [*seconds, tensor("text", PLAIN, binary=binary)],
        parameters={"top_k": 2, "function_to_apply": "sigmoid", **task},
        outputs=[
            triton.InferRequestedOutput(output, binary_data=binary) for output in ("label", "score")
        ],
    )
    inputs: list[Any] = list(PLAIN)
    if pairs:
        inputs = [
            {"text": text, "text_pair": second} for text, second in zip(PLAIN, SECONDS, strict=True)
        ]
    expected = expected_labels(server, name, inputs, top_k=2, function_to_apply="sigmoid")
    assert texts_of(result, "label") == [[one["label"] for one in row] for row in expected]
    scores = [[one["score"] for one in row] for row in expected]
    np.testing.assert_allclose(result.as_numpy("score"), scores, rtol=1e-6)
    assert result.as_numpy("score").dtype == np.float32


@pytest.mark.parametrize(
    ("task", "binary"), [({}, False), ({"task": "fill-mask"}, True), ({"task": None}, True)]
)
def test_fills_of_pairs(client_of_triton: Any, server: str, task: Any, *, binary: bool) -> None:
    # A model with both tasks fills masks by default.
    masked = [f"{text} [MASK]" for text in PLAIN]
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


DEEP: list[Any] = json.loads("[" * 300 + "]" * 300)


def body(**changes: Any) -> dict[str, Any]:
    """Return the JSON object of a valid request with these changes."""
    text = {"name": "text", "shape": [1], "datatype": "BYTES", "data": TEXTS[:1]}
    return {"inputs": [{**text, **changes.pop("tensor", {})}], **changes}


TWICE = body()
TWICE["inputs"] *= 2
TARGETS_TWICE = body(parameters={"targets": ["city"]})
TARGETS_TWICE["inputs"] += body(tensor={"name": "targets"})["inputs"]
UNEVEN, BLANK, LABELS_OF_TARGETS = body(), body(), body()
UNEVEN["inputs"] += body(tensor={"name": "text_pair", "data": ["a", "b"], "shape": [2]})["inputs"]
BLANK["inputs"] += body(tensor={"name": "text_pair", "data": [" "]})["inputs"]
LABELS_OF_TARGETS["inputs"] += body(tensor={"name": "targets"})["inputs"]


@pytest.mark.parametrize(
    ("name", "request_body", "reason"),
    [
        *(
            ("tiny", one, reason)
            for one, reason in [
                ([], "The body must be a JSON object (got a list)."),
                ({}, "inputs is missing; add it."),
                (body(model_name=5), "model_name must be a text (got 5)."),
                (
                    body(model_name="other"),
                    "model_name must be null or a name of the model in the path",
                ),
                (body(inputs=[]), 'a tensor "targets" (got tensors of texts: 0).'),
                (body(tensor={"name": "targets"}), "inputs must have one tensor of texts"),
                (body(tensor={"datatype": "FP32"}), 'must have the datatype BYTES (got "FP32")'),
                (
                    body(tensor={"shape": [2]}),
                    'The input "text" has the shape [2]; the shape must have at',
                ),
                (body(tensor={"shape": "1"}), 'inputs.0.shape must be a list (got "1").'),
                (
                    body(tensor={"data": [1]}),
                    'The input "text" must have only texts in data (got 1).',
                ),
                (body(tensor={"data": None}), 'The input "text" has no data;'),
                (body(tensor={"dtype": "x"}), 'Unknown field "inputs.0.dtype"; remove it.'),
                (body(tensor={"parameters": {"x": 1}}), 'Unknown parameter "x" in inputs "text"'),
                (
                    body(tensor={"parameters": {"binary_data_size": 9}}),
                    "from 0 to 0 (got 9 and data).",
                ),
                (body(tensor={"data": ["a"]}), "text has no mask"),
                (body(tensor={"name": "a\nb", "data": ["a"]}), '"a\\nb" has no mask'),
                (body(tensor={"name": "a" * 5_000, "data": ["a"]}), f'"{"a" * 77}…" has no mask'),
                (TARGETS_TWICE, "targets is a tensor and a parameter; send only one."),
                (body(parameters={"binary_data_output": 1}), "must be true or false (got 1)."),
                (body(parameters={"a\n": DEEP}), "parameters.a\\n.list.0.list.0.list.0.list.0"),
                (body(parameters={"a": DEEP}), "… must be a value with fewer levels (got a list)."),
                (
                    body(outputs=[{"name": "logits"}]),
                    'Unknown output "logits"; allowed: text_index',
                ),
                (
                    body(outputs=[{"name": "token", "parameters": {"classification": 3}}]),
                    'Unknown parameter "classification" in outputs "token"; allowed: binary_data.',
                ),
                (TWICE, 'The input "text" is a duplicate; send it once.'),
            ]
        ),
        ("both", UNEVEN, 'The input "text_pair" must have one text per text of "text", 1 in total'),
        ("both", BLANK, 'text[0].text_pair must be a non-blank text (got " ").'),
        ("both", body(tensor={"name": "text_pair"}), 'a tensor "text_pair" and a tensor "targets"'),
        ("labels", LABELS_OF_TARGETS, 'a tensor "text_pair" (got tensors of texts: 2).'),
        (
            "both",
            body(parameters={"task": "score"}),
            (
                "parameters.task must be fill-mask or text-classification or token-classification "
                '(got "score").'
            ),
        ),
        ("labels", body(outputs=[{"name": "token"}]), 'Unknown output "token"; allowed: label,'),
        (
            "labels",
            body(tensor={"data": ["a"] * 5, "shape": [5]}),
            "text must have at most 4",
        ),
        (
            "tiny",
            body(parameters={"task": CLASSIFY["task"]}),
            'use a model with this task: "labels"',
        ),
        ("labels", body(parameters={"task": "fill-mask"}), "does not have the task fill-mask"),
        ("splade", body(), 'Model "splade" does not have the task fill-mask'),
    ],
)
def test_bad_requests(every_model: TestClient, name: str, request_body: Any, reason: str) -> None:
    answer = every_model.post(f"/v2/models/{name}/infer", json=request_body)
    assert answer.status_code == 422
    assert reason in answer.json()["error"]


def test_bytes_that_belong_to_no_input(client: TestClient) -> None:
    content = b'{"inputs":[{"name":"t","shape":[1],"datatype":"BYTES","data":["[MASK]"]}]}'
    headers = {"Inference-Header-Content-Length": str(len(content))}
    assert client.post(INFER, content=content, headers=headers).status_code == 200
    answer = client.post(INFER, content=content + b"more", headers=headers)
    assert answer.status_code == 422
    assert (
        "The body has bytes after the last binary input (number of bytes: 4)"
        in (answer.json()["error"])
    )


def test_other_models_and_versions(client: TestClient) -> None:
    for path in ("/v2/models/other/infer", "/v2/models/tiny/versions/2/infer"):
        answer = client.post(path, json=body())
        assert answer.status_code == 404
        assert answer.json()["error"].startswith("Unknown ")
    assert client.post("/v2/models/tiny/versions/1/infer", json=body()).status_code == 200


def test_every_mask_has_as_many_fills(client: TestClient, tiny: Tiny) -> None:
    # Output tensors are rectangular, even if `top_k` is the number of all ordinary tokens.
    ordinary = len(tiny.vocabulary) - 5
    limit = client.get("/info").json()["limits"]["max_top_k"]
    answer = client.post(INFER, json=body(parameters={"top_k": min(limit, ordinary)}))
    assert "id" not in answer.json()
    shapes = {output["name"]: output["shape"] for output in answer.json()["outputs"]}
    assert shapes["token"] == [1, min(limit, ordinary)]


def test_masks_filled_together(client: TestClient) -> None:
    # With the strategy `joint`, an output tensor has one row per text.
    inputs = [{"name": "t", "shape": [2], "datatype": "BYTES", "data": TEXTS}]
    parameters = {"strategy": "joint", "top_k": 2}
    answer = client.post(INFER, json={"inputs": inputs, "parameters": parameters}).json()
    tensors = {output["name"]: output for output in answer["outputs"]}
    assert tensors["text_index"]["data"] == [0, 1]
    assert tensors["token_str"]["shape"] == [2, 2]
    assert all(" " in text for text in tensors["token_str"]["data"][2:])


def test_rows_of_different_lengths_are_filled_up() -> None:
    fill = Fill(0.5, 7, "dog", "the dog")
    read = InferRequest.read(json.dumps(body()).encode(), None, LIMITS, "fill-mask")
    result = [TextFills([[fill, fill]]), TextFills([[fill], []])]
    content, _ = response_to(read, "tiny", result)
    tensors = {output["name"]: output for output in json.loads(content)["outputs"]}
    assert tensors["text_index"]["data"] == [0, 1, 1]
    assert tensors["token"]["shape"] == [3, 2]
    assert tensors["token"]["data"] == [7, 7, 7, -1, -1, -1]
    assert tensors["token_str"]["data"] == ["dog", "dog", "dog", "", "", ""]
    assert tensors["score"]["data"] == [0.5, 0.5, 0.5, 0, 0, 0]
