"""Examples in the OpenAPI document, sent to models that together have all tasks."""

from pathlib import Path

from fastapi.testclient import TestClient

from tests.service.api.test_openapi import operations, request_schema
from tests.service.serving import serving
from tests.service.taggers import write_tagger


def test_every_example_runs(both: Path, ranker: Path, splade: Path, tmp_path: Path) -> None:
    tagger = write_tagger(tmp_path.with_name("tagger"))
    for bundle in (both, ranker, splade, tagger):
        (tmp_path / bundle.name).symlink_to(bundle)
    with serving(tmp_path) as client:
        send_examples(client)


def send_examples(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    sent = 0
    for path, method, operation in operations(document):
        if "requestBody" not in operation:
            continue
        schema = request_schema(operation)
        for named in schema.get("anyOf", [schema]):
            name = named["$ref"].removeprefix("#/components/schemas/")
            if "anyOf" in schema and "Classify" in name and "infer" not in path:
                continue  # the first task of the model is fill-mask
            for example in document["components"]["schemas"][name]["examples"]:
                model = "ranker" if "rerank" in path else "both"
                model = "splade" if "embed_sparse" in path else model
                model = "tagger" if "tokens" in path or "ClassifyTokens" in name else model
                address = path.replace("{name}", model).replace("{version}", "1")
                answer = client.request(method, address, json=example)
                assert answer.status_code == 200, (path, example, answer.text)
                sent += 1
    assert sent > 20
