"""Common properties of all operations in the OpenAPI document."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.settings import Settings
from tests.service.tiny import Tiny


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the path, the method and the description of each operation."""
    return [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


@pytest.fixture(scope="module")
def document(tiny: Tiny) -> dict[str, Any]:
    """OpenAPI document of a service with one model."""
    with TestClient(create_app(Settings(bundle=tiny.path))) as client:
        content: dict[str, Any] = client.get("/openapi.json").json()
        return content


def test_every_operation_has_a_timeout_and_errors(document: dict[str, Any]) -> None:
    # Every operation documents an error for a timeout out of bounds.
    assert len(operations(document)) > 20
    for path, method, operation in operations(document):
        [timeout] = [one for one in operation["parameters"] if one["in"] == "header"]
        assert timeout["name"] == "X-Request-Timeout-Ms"
        assert timeout["schema"] == {"type": "integer", "minimum": 1, "maximum": 600_000}
        assert {"400", "4XX"} & operation["responses"].keys(), (path, method)
        assert {"504", "5XX"} & operation["responses"].keys(), (path, method)


def test_names_and_versions_are_those_that_are_there(document: dict[str, Any]) -> None:
    # Before the service has loaded a model, the document names no models.
    found = [
        (parameter["name"], tuple(parameter["schema"]["enum"]))
        for _, _, operation in operations(document)
        for parameter in operation["parameters"]
        if parameter["in"] in {"path", "query"}
    ]
    assert set(found) == {("name", ("tiny",)), ("version", ("1",))}
    for path, _, operation in operations(create_app(Settings()).openapi()):
        for parameter in operation["parameters"]:
            assert ("{name}" in path) or parameter["name"] != "name"
            assert parameter["name"] != "name" or "enum" not in parameter["schema"]


def test_rules_beyond_the_schema_are_told(document: dict[str, Any]) -> None:
    # The response descriptions of all operations with a body name rules beyond the schema.
    told = [
        path
        for path, method, operation in operations(document)
        if method == "post" and "requestBody" in operation
        for status in ("422", "4XX")
        if "contains at least one mask"
        in operation["responses"].get(status, {}).get("description", "")
    ]
    with_bodies = [path for path, _, one in operations(document) if "requestBody" in one]
    assert told == with_bodies
    assert len(told) > 6
