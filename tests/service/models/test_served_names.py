"""Aliases of models, which the setting `served_name` defines."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.errors import SettingsError
from fillmask.models.registry import with_aliases
from tests.service.put_bundle import put_bundle, reload_models
from tests.service.serving import serving
from tests.service.tiny import Tiny

ALIASES = "fillmask, second=org/second"
NAMES = ["first", "org/second", "fillmask", "second"]
TEXT = "the [MASK]"
BODY = {"inputs": TEXT, "parameters": {"top_k": 2}}
TENSOR = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [TEXT]}


def put_both(tiny: Tiny, directory: Path) -> Path:
    """Write the bundles of the models "first", which is the default model, and "org/second"."""
    put_bundle(tiny.path, directory / "a", "first")
    put_bundle(tiny.path, directory / "b", "org/second")
    return directory


@pytest.fixture(scope="module")
def client(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Client of a service with both models and an alias of each."""
    bundles = put_both(tiny, tmp_path_factory.mktemp("bundles"))
    with serving(bundles, served_name=ALIASES) as test_client:
        yield test_client


def models(client: TestClient) -> Any:
    return client.app.state.models  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("alias", "name"),
    [("fillmask", "first"), ("second", "org/second")],
)
def test_every_protocol_knows_an_alias(client: TestClient, alias: str, name: str) -> None:
    # Responses of the inference protocols repeat the name in the path.
    assert models(client).get(alias).name == name
    fills = client.post(f"/models/{name}", json=BODY).json()
    assert client.post(f"/models/{alias}", json=BODY).json() == fills
    assert client.get(f"/models/{alias}").json()["name"] == name

    body = {"instances": [TEXT], "parameters": {"top_k": 2}}
    predicted = client.post(f"/v1/models/{alias}:predict", json=body).json()
    assert predicted == {"predictions": [fills]}
    assert client.get(f"/v1/models/{alias}").json() == {"name": alias, "ready": True}

    inferred = client.post(f"/v2/models/{alias}/infer", json={"inputs": [TENSOR]}).json()
    assert inferred["model_name"] == alias
    assert client.get(f"/v2/models/{alias}").json()["name"] == alias
    assert client.get(f"/v2/models/{alias}/ready").json() == {"name": alias, "ready": True}


def test_lists_have_the_aliases(client: TestClient) -> None:
    # GET /models describes each model once.
    assert client.get("/v1/models").json() == {"models": NAMES}
    assert client.get("/v2/models").json() == {"models": NAMES}
    assert [one["name"] for one in client.post("/v2/repository/index").json()] == NAMES
    assert [one["name"] for one in client.get("/models").json()] == NAMES[:2]
    assert client.get("/info").json()["name"] == "first"
    assert client.get("/models/org/second").json()["name"] == "org/second"
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["ModelName"]["enum"] == NAMES
    listed = ", ".join(f'"{one}"' for one in NAMES)
    answer = client.post("/models/third", json=BODY)
    assert answer.json() == {"error": f'Unknown model "third"; use a served model: {listed}.'}


def test_the_body_may_have_any_name_of_the_model_in_the_path(client: TestClient) -> None:
    for name in ("first", "fillmask"):
        body = {"inputs": [TENSOR], "model_name": name}
        assert (
            client.post("/v2/models/fillmask/infer", json=body).json()["model_name"] == "fillmask"
        )
    answer = client.post("/v2/models/fillmask/infer", json=body | {"model_name": "second"})
    assert 'in the path, "first" or "fillmask" (got "second").' in answer.json()["error"]


@pytest.mark.parametrize(
    ("served_name", "sentence"),
    [
        (
            "x,stats",
            (
                'served_name has the alias "stats", which is a part of a path of the Open '
                "Inference Protocol; use another alias."
            ),
        ),
        (
            "second=other",
            (
                'The model of "second" in served_name must be one of "first", "org/second" '
                '(got "other").'
            ),
        ),
        (
            "org/second",
            (
                'served_name has the alias "org/second" of the model "first", but "org/second" is '
                'a name of the model "org/second"; use another alias.'
            ),
        ),
        (
            "x,x=org/second",
            (
                'served_name has the alias "x" of the model "org/second", but "x" is a name of the '
                'model "first"; use another alias.'
            ),
        ),
    ],
)
def test_a_bad_alias(client: TestClient, served_name: str, sentence: str) -> None:
    by_name = models(client).by_name
    with pytest.raises(SettingsError) as caught:
        with_aliases(served_name, by_name, by_name["first"])
    assert str(caught.value) == sentence


def test_an_alias_may_repeat_the_name_of_its_model(client: TestClient) -> None:
    by_name = models(client).by_name
    assert with_aliases("first,org/second=org/second,", by_name, by_name["first"]) == by_name


def test_reloads_keep_the_aliases(
    tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # The registry ignores a bundle that takes a model from an alias, or an alias from a model.
    bundles = put_both(tiny, tmp_path)
    with serving(bundles, served_name=ALIASES) as client, caplog.at_level(logging.ERROR):

        def reload(directory: str, name: str) -> list[str]:
            put_bundle(tiny.path, bundles / directory, name)
            reload_models(client)
            listed: list[str] = client.get("/v2/models").json()["models"]
            return listed

        # an alias without a model follows the default model
        assert reload("a", "renamed") == ["renamed", *NAMES[1:]]
        assert client.get("/models/fillmask").json()["name"] == "renamed"
        assert caplog.text == ""
        assert reload("b", "third") == ["renamed", *NAMES[1:]]
        assert (
            'The model of "second" in served_name must be one of "renamed", "third"' in caplog.text
        )
        put_bundle(tiny.path, bundles / "b", "org/second")
        assert reload("c", "second") == ["renamed", *NAMES[1:]]
        assert '"second" is a name of the model "second"; use another alias.' in caplog.text
        assert client.post("/models/second", json=BODY).is_success
        # the default model may take the name of its alias
        assert reload("a", "fillmask") == ["fillmask", "org/second", "second"]
        assert client.post("/models/fillmask", json=BODY).is_success


def test_a_reload_keeps_the_default_model_of_the_settings(tiny: Tiny, tmp_path: Path) -> None:
    bundles = put_both(tiny, tmp_path)
    with serving(bundles, model="org/second", served_name="main") as client:
        put_bundle(tiny.path, bundles / "b", "renamed")
        reload_models(client)
        assert models(client).default.name == "renamed"
        assert client.get("/models/main").json()["name"] == "renamed"
