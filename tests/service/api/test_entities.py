"""Entities of a tagger that knows a few words, over HTTP, by the clients and with the command.

tests/parity compares them with transformers.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from huggingface_hub import InferenceClient

from fillmask import Entity, FillMask, RejectedText
from fillmask.app import create_app
from fillmask.bundles.bundle import DESCRIPTION_FILE
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs
from fillmask.errors import BundleError
from fillmask.settings import Settings
from tests.service.cli.command_line import fillmask, read_rows, write_rows
from tests.service.responses import check_refusal, post
from tests.service.server_process import start_process
from tests.service.taggers import write_tagger

TEXT = "😀 she is in paris and rome"
FOUND = [("PER", "she"), ("LOC", "paris"), ("LOC", "rome")]
PAIR = {"text": "she walked", "text_pair": "a dog in rome"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tagger(tmp_path_factory.mktemp("entities") / "tagger")


@pytest.fixture(scope="module")
def client(bundle: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(bundle=bundle, threads=1))) as client:
        yield client


def entities(client: TestClient, inputs: object, **parameters: object) -> Any:
    return post(client, "/classify-tokens", inputs=inputs, parameters=parameters)


def named(text: str, found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["entity_group"], text[one["start"] : one["end"]]) for one in found]


def test_offsets_count_code_points(client: TestClient) -> None:
    found = entities(client, TEXT)
    assert named(TEXT, found) == FOUND
    assert [list(one) for one in found] == [["entity_group", "score", "word", "start", "end"]] * 3
    assert all(0.5 < one["score"] <= 1 for one in found)
    assert entities(client, TEXT, ignore_labels=["O", "LOC"]) == found[:1]
    every = entities(client, TEXT, aggregation_strategy="none", ignore_labels=[])
    assert [one["entity"] for one in every] == ["O", "B-PER", "O", "O", "B-LOC", "O", "B-LOC"]
    assert [one["index"] for one in every] == list(range(1, 8))


def test_lists_pairs_and_texts_without_entities(client: TestClient) -> None:
    # Each text may have its parameters, and an invalid one its error.
    body = {
        "inputs": ["a dog", PAIR, " ", TEXT],
        "parameters": [None, None, None, {"ignore_labels": ["PER", "O"]}],
        "on_error": "report",
    }
    none, pair, invalid, last = client.post("/classify-tokens", json=body).json()
    assert none == []
    assert [(one["part"], PAIR[one["part"]][one["start"] : one["end"]]) for one in pair][:1] == [
        ("text", "she")
    ]
    assert invalid["error"].startswith("inputs[2]")
    assert named(TEXT, last) == FOUND[1:]
    assert entities(client, "a dog") == []


def test_long_texts(client: TestClient) -> None:
    # Almost all entities of the sentences alone are found at their places in the text.
    text = " and ".join([TEXT] * 30)
    found = entities(client, text, on_long_text="window")
    expected = [
        (number * len(f"{TEXT} and ") + TEXT.index(word), label)
        for number in range(30)
        for label, word in FOUND
    ]
    places = [(one["start"], one["entity_group"]) for one in found]
    assert places == sorted(set(places))
    assert len({*places} & {*expected}) > 0.9 * len(expected)
    pair = {
        "inputs": {"text": text, "text_pair": "a dog"},
        "parameters": {"on_long_text": "window"},
    }
    answer = client.post("/classify-tokens", json=pair)
    assert answer.status_code == 422
    assert "window" not in answer.json()["error"]


def test_the_protocols(client: TestClient) -> None:
    found = entities(client, TEXT)
    instances = {"instances": [TEXT, "a dog"]}
    assert post(client, "/v1/models/tagger:predict", **instances) == {"predictions": [found, []]}
    assert post(client, "/", inputs=TEXT) == post(client, "/models/tagger", inputs=TEXT) == found
    tensor = {"name": "x", "datatype": "BYTES", "shape": [2], "data": ["a dog", TEXT]}
    outputs = post(client, "/v2/models/tagger/infer", inputs=[tensor])["outputs"]
    by_name = {one["name"]: one for one in outputs}
    assert list(by_name) == ["text_index", "label", "word", "score", "start", "end"]
    assert {tuple(one["shape"]) for one in outputs} == {(3,)}
    assert by_name["text_index"]["data"] == [1, 1, 1]
    for name, field in (("label", "entity_group"), ("word", "word"), ("start", "start")):
        assert by_name[name]["data"] == [one[field] for one in found]
    none = {**tensor, "shape": [1], "data": ["a dog"]}
    selected = {"inputs": [none], "outputs": [{"name": "label"}]}
    [output] = post(client, "/v2/models/tagger/infer", **selected)["outputs"]
    assert (output["shape"], output["data"]) == ([0], [])


@pytest.mark.processes
def test_hugging_face_client(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each parameter of the client works as with Hugging Face's service.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with start_process(f"--bundle={bundle}", "--threads=1") as (_, url):
        for path in ("", "/classify-tokens", "/models/tagger"):
            hub = InferenceClient(model=f"{url}{path}")
            found = hub.token_classification(TEXT)
            assert [(one.entity_group, one.word) for one in found] == FOUND
            assert hub.token_classification(TEXT, ignore_labels=["PER", "O"]) == found[1:]
            tokens = hub.token_classification(TEXT, aggregation_strategy="none")
            assert [one.word for one in tokens] == [word for _, word in FOUND]
        message = httpx.post(f"{url}/fill-mask", json={"inputs": "a [MASK]"}).json()["error"]
        assert message.endswith("use a task of this model: token-classification.")


def test_python(bundle: Path) -> None:
    with FillMask(bundle, threads=1) as model:
        found = model.classify_tokens(TEXT)
        assert all(isinstance(one, Entity) for one in found)
        assert [(one.label, one.word) for one in found] == FOUND
        assert [TEXT[one.start : one.end] for one in found] == [word for _, word in FOUND]
        many = model.classify_tokens([TEXT, "", "a dog"], on_error="report")
        assert many[0] == found
        assert isinstance(many[1], RejectedText)
        assert many[2] == []
        assert model.tasks == ("token-classification",)
        assert model.labels == ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def test_command(bundle: Path, client: TestClient, tmp_path: Path) -> None:
    # In CSV, each entity has a line, and a text without any has one without values.
    rows = [{"inputs": TEXT}, {"inputs": "a dog"}, {"inputs": "she", "text_pair": "ignored"}]
    source = write_rows(tmp_path / "in.jsonl", rows)
    found = [entities(client, row["inputs"]) for row in rows]
    for ending in ("jsonl", "csv", "parquet"):
        files = ("--input", source, "--output", tmp_path / f"out.{ending}")
        assert fillmask("--task=classify-tokens", "--bundle", bundle, *files).code == 0
    assert [row["entities"] for row in read_rows(tmp_path / "out.jsonl")] == found
    with (tmp_path / "out.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["row"], line["entity_group"], line["word"]) for line in lines] == [
        *(("1", label, word) for label, word in FOUND),
        ("2", "", ""),
        ("3", "PER", "she"),
    ]
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()
    present = [
        [{k: v for k, v in one.items() if v is not None} for one in row["entities"]]
        for row in table
    ]
    assert present == found
    flags = ("--task=classify-tokens", "--bundle", bundle, "--aggregation-strategy=none")
    done = fillmask(TEXT, *flags, "--ignore-labels=O,B-PER", "--json")
    expected = entities(client, TEXT, aggregation_strategy="none", ignore_labels=["O", "B-PER"])
    assert json.loads(done.out) == expected
    shown = fillmask(TEXT, "--task=classify-tokens", "--bundle", bundle).out.split()
    assert [word for word in shown if word in {"she", "paris", "rome"}] == ["she", "paris", "rome"]
    assert fillmask("a dog", *flags[:3]).out == "No entities.\n"


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_wrong_logit_is_an_internal_error(
    wrong: float, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    batcher = client.app.state.models.default.batcher  # type: ignore[attr-defined]
    run = batcher._run

    def broken(batch: Batch) -> BatchOutputs:
        outputs: BatchOutputs = run(batch)
        outputs.tokens[2, 1] = wrong
        return outputs

    monkeypatch.setattr(batcher, "_run", broken)
    assert client.post("/classify-tokens", json={"inputs": TEXT}).status_code == 500


def test_response_above_the_limit(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    # The bound holds for the largest response, with each token, and refuses before any pass.
    body = {"inputs": TEXT, "parameters": {"aggregation_strategy": "none", "ignore_labels": []}}
    size = len(client.post("/classify-tokens", json=body).content)
    monkeypatch.setattr("fillmask.api.task_call.MAX_RESPONSE_BYTES", size - 1)
    check = client.post("/classify-tokens", json=body)
    assert check.status_code == 422
    bound = int(check.json()["error"].split()[4])
    assert size <= bound < 5 * size
    monkeypatch.setattr("fillmask.api.task_call.MAX_RESPONSE_BYTES", bound)
    assert client.post("/classify-tokens", json=body).status_code == 200


def test_another_task_of_the_model_is_refused(client: TestClient) -> None:
    answer = client.post("/classify", json={"inputs": TEXT})
    check_refusal(
        answer,
        422,
        'Model "tagger" does not have the task text-classification; use a task of this model: '
        "token-classification.",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one.update(log_probs=[-9.0] * len(one["labels"])), "must match the bundle's"),
        (lambda one: one.update(labels=one["labels"][1:]), "one log-probability per label"),
        (lambda one: one.update(labels=[5] * len(one["labels"])), "labels below 5"),
        (
            lambda one: one.update(labels=one["labels"][1:], log_probs=one["log_probs"][1:]),
            "must have as many tokens as in the bundle",
        ),
    ],
)
def test_golden_labels(change: Any, message: str, tmp_path: Path) -> None:
    path = write_tagger(tmp_path / "tagger")
    description = json.loads((path / DESCRIPTION_FILE).read_text())
    change(description["golden"]["token_labels"][0])
    (path / DESCRIPTION_FILE).write_text(json.dumps(description))
    with pytest.raises(BundleError, match=message):
        FillMask(path, threads=1)
