"""Fixtures: bundles with a classification head and clients of services with these bundles."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.service.classifiers import write_classifier


@pytest.fixture(scope="session")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle with only the task text-classification, whose model reads pairs."""
    return write_classifier(tmp_path_factory.mktemp("bundles") / "topics")


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle with both tasks, whose model reads pairs."""
    return write_classifier(tmp_path_factory.mktemp("bundles") / "both", name="both", fills=True)


@pytest.fixture(scope="session")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle of a classifier that reads single texts."""
    path = tmp_path_factory.mktemp("bundles") / "single"
    return write_classifier(path, name="single", pairs=False)


@pytest.fixture(scope="module")
def topics_client(topics: Path) -> Iterator[TestClient]:
    """Client of a service with the bundle `topics`."""
    with TestClient(create_app(Settings(bundle=topics, threads=1))) as client:
        yield client


@pytest.fixture(scope="module")
def both_client(both: Path) -> Iterator[TestClient]:
    """Client of a service with the bundle `both`."""
    with TestClient(create_app(Settings(bundle=both, threads=1))) as client:
        yield client
