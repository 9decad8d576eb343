"""Fixtures: bundles of the tiny model and services in this process or a separate process."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.server_process import Process, start_process
from tests.service.serving import serving
from tests.service.tiny import Tiny, describe_files, write_bundle

EditBundle = Callable[[Callable[[dict[str, Any]], object]], Path]
StartServer = Callable[..., contextlib.AbstractContextManager[tuple[Process, str]]]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith("FILLMASK_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """Tiny model and its bundle.

    Tests must not change the files.
    """
    return write_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


@pytest.fixture
def bundle_copy(tmp_path: Path) -> Path:
    """Bundle of the tiny model that a test may damage."""
    return write_bundle(tmp_path / "copy").path


@pytest.fixture
def edit_bundle(bundle_copy: Path) -> EditBundle:
    """Function that changes bundle.json in `bundle_copy` and returns the path of the bundle."""

    def edit(change: Callable[[dict[str, Any]], object]) -> Path:
        file = bundle_copy / "bundle.json"
        bundle = json.loads(file.read_text())
        bundle["files"] = describe_files(bundle_copy)
        change(bundle)
        file.write_text(json.dumps(bundle))
        return bundle_copy

    return edit


@pytest.fixture(scope="session")
def client(tiny: Tiny) -> Iterator[TestClient]:
    """Client of a service in this process, with low limits."""
    with serving(
        tiny.path, threads=2, max_texts=4, max_masks=6, max_top_k=20, max_body_bytes=150_000
    ) as test_client:
        yield test_client


@pytest.fixture(scope="session")
def tiny_url(tiny: Tiny) -> Iterator[str]:
    """Address of a service process with the tiny model, for tests that change nothing in it."""
    with start_process("--bundle", str(tiny.path)) as (_, url):
        yield url


@pytest.fixture
def start_server(tiny: Tiny) -> StartServer:
    """Function that starts a service process with the tiny model, like `start_process`."""
    return partial(start_process, "--bundle", str(tiny.path))


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File that, while it exists, holds the runs of processes with the code HELD."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "HELD"
