"""Common properties of all operations in the OpenAPI document."""

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask import __version__
from fillmask.api.openapi import TAGS
from fillmask.app import create_app
from fillmask.parameters.types import MAX_TARGETS
from fillmask.settings import Settings
from tests.service.tiny import Tiny

KEY = "a-key-of-our-shop-4711"
# methods and paths that need no API key
PUBLIC = {
    *(("get", path) for path in ("/", "/metrics", "/health/live", "/health/ready")),
    *(("get", path) for path in ("/v2/health/live", "/v2/health/ready")),
}
# paths with two kinds of bodies, of which the model's task or the client's library selects one
UNIONS = {
    *("/", "/models/{name}", "/rerank", "/models/{name}/rerank", "/v1/models/{name}:predict"),
    *("/v2/models/{name}/infer", "/v2/models/{name}/versions/{version}/infer"),
}


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the path, the method and the description of each operation."""
    return [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def request_schema(operation: dict[str, Any]) -> Any:
    """Return the schema of an operation's request body."""
    return operation["requestBody"]["content"]["application/json"]["schema"]


@pytest.fixture(scope="module")
def document(client: TestClient) -> dict[str, Any]:
    """OpenAPI document of a service with one model."""
    content: dict[str, Any] = client.get("/openapi.json").json()
    return content


def test_operations_with_a_body_have_a_timeout_and_errors(document: dict[str, Any]) -> None:
    assert len(operations(document)) > 20
    error = {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}
    for _, _, operation in operations(document):
        for status in operation["responses"].keys() - {"200"}:
            if operation["operationId"] != "metrics":  # FastAPI gives its errors its own type
                assert operation["responses"][status]["content"]["application/json"] == error
        assert ("422" in operation["responses"]) == ("requestBody" in operation)
        if "requestBody" in operation:
            [timeout] = [one for one in operation["parameters"] if one["in"] == "header"]
            assert timeout["name"] == "X-Request-Timeout-Ms"
            assert timeout["schema"] == {"type": "integer", "minimum": 1, "maximum": 600_000}


def test_statuses_are_those_that_can_occur(document: dict[str, Any]) -> None:
    responses = document["paths"]["/fill-mask"]["post"]["responses"]
    errors = {"400", "404", "408", "413", "415", "422", "429", "500", "503", "504"}
    assert responses.keys() == {"200", *errors}
    fills = {"schema": {"$ref": "#/components/schemas/FillMaskResponse"}}
    assert responses["200"]["content"]["application/json"] == fills
    assert document["info"]["title"] == "fillmask"
    assert document["info"]["version"] == __version__


def test_names_and_versions_are_those_that_are_there(document: dict[str, Any]) -> None:
    # Before the service has loaded a model, the document names no models.
    names, versions = (
        [
            parameter["schema"]
            for _, _, operation in operations(document)
            for parameter in operation.get("parameters", ())
            if parameter["name"] == name
        ]
        for name in ("name", "version")
    )
    reference = {"$ref": "#/components/schemas/ModelName"}
    assert all(schema == reference for schema in names)
    assert len(names) > 5
    assert document["components"]["schemas"]["ModelName"]["enum"] == ["tiny"]
    assert all(schema["enum"] == ["1"] for schema in versions)
    assert "ModelName" not in create_app(Settings()).openapi()["components"]["schemas"]


def test_every_request_body_has_a_name(document: dict[str, Any]) -> None:
    # Generators of clients reject an object without a name that occurs twice.
    bodies = {
        path: request_schema(operation)
        for path, _, operation in operations(document)
        if "requestBody" in operation
    }
    for body in bodies.values():
        assert all(one.keys() == {"$ref"} for one in body.get("anyOf", [body]))
    assert {path for path, body in bodies.items() if "anyOf" in body} == UNIONS


def test_every_schema_is_used_and_has_its_name_as_title(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    used = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert used == set(schemas)
    for name, schema in schemas.items():
        assert schema.get("title", name) == name


def test_the_schemas_show_the_limits(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    request, parameters, pair = (
        schemas[name] for name in ("FillMaskRequest", "FillMaskParameters", "Pair")
    )
    assert request["additionalProperties"] is False
    text, one, texts = request["properties"]["inputs"]["anyOf"]
    assert text == {"type": "string", "minLength": 1}
    assert one == {"$ref": "#/components/schemas/Pair"}
    assert texts["items"]["anyOf"] == [{"type": "string"}, one]
    assert (texts["minItems"], texts["maxItems"]) == (1, 4)
    assert (pair["required"], pair["additionalProperties"]) == (["text"], False)
    assert pair["properties"]["text_pair"]["anyOf"][0]["pattern"] == r"\S"
    top_k, targets = (parameters["properties"][name]["anyOf"][0] for name in ("top_k", "targets"))
    assert top_k == {"type": "integer", "minimum": 1, "maximum": 20}
    assert (targets["minItems"], targets["maxItems"]) == (1, MAX_TARGETS)
    assert targets["items"] == {"type": "string", "pattern": r"\S"}
    assert targets["uniqueItems"] is True


def test_operation_ids_are_short_and_unique(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    for one in ids:
        assert re.fullmatch(r"[a-z][a-z0-9_]{2,25}", one), one
    named = {"fill_mask", "score", "classify", "infer", "predict", "run_model", "list_models"}
    assert named <= set(ids)


def test_fills_come_first(document: dict[str, Any]) -> None:
    used = {tag for _, _, operation in operations(document) for tag in operation["tags"]}
    assert document["tags"] == TAGS
    assert used == {tag["name"] for tag in TAGS}
    assert [tag["name"] for tag in TAGS[:3]] == ["Fills", "Scores", "Labels"]
    paths = list(document["paths"])
    assert paths[:3] == ["/fill-mask", "/models/{name}/fill-mask", "/score"]
    playground = document["paths"]["/"]["get"]["responses"]["200"]["content"]
    assert playground.keys() == {"text/html", "application/json"}


def test_with_keys_the_document_names_the_operations_that_need_one(
    document: dict[str, Any], tiny: Tiny, tmp_path: Path
) -> None:
    # With a security scheme, the page at /docs has the button "Authorize".
    file = tmp_path / "keys"
    file.write_text(KEY)
    settings = Settings(bundle=tiny.path, threads=1, api_keys_file=file)
    assert "security" not in str(document)
    assert '"401"' not in str(document)
    with TestClient(create_app(settings)) as client:
        document = client.get("/openapi.json").json()
        [(name, scheme)] = document["components"]["securitySchemes"].items()
        assert scheme == {"type": "http", "scheme": "bearer"}
        for path, method, operation in operations(document):
            closed = (method, path) not in PUBLIC
            assert operation.get("security") == ([{name: []}] if closed else None), path
            assert ("401" in operation["responses"]) == closed
            address = path.replace("{name}", "tiny").replace("{version}", "1")
            answer = client.request(method, address, headers={"Authorization": "Bearer no"})
            assert (answer.status_code == 401) == closed, path
