"""Fixtures: bundles with a classification head, clients of their services, standard input."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.cli.formats import base
from fillmask.settings import Settings
from tests.service.classifiers import write_classifier
from tests.service.cli.command_line import Done, fillmask

Pipe = Callable[..., Done]


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle with the tasks fill-mask and text-classification, whose model reads pairs."""
    return write_classifier(tmp_path_factory.mktemp("bundles") / "both", name="both", fills=True)


@pytest.fixture(scope="session")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle of a classifier that reads single texts."""
    path = tmp_path_factory.mktemp("bundles") / "single"
    return write_classifier(path, name="single", pairs=False)


@pytest.fixture(scope="module")
def both_client(both: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(bundle=both, threads=1, max_passes=10_000))) as client:
        yield client


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipe:
    """Function that runs the command with given bytes on standard input."""

    def run(content: bytes, *arguments: object) -> Done:
        source = tmp_path / "standard_input"
        source.write_bytes(content)
        monkeypatch.setattr("sys.stdin", io.StringIO())
        monkeypatch.setattr(base, "_open_standard_input", lambda: source.open("rb", buffering=0))
        return fillmask(*arguments)

    return run
