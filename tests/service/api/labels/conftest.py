"""Fixtures: a service with three models, for fills, for labels and for both."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.service.api.labels.bundles import write_label_bundle
from tests.service.server_process import start_process
from tests.service.tiny import write_bundle


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle with both tasks, pairs and two token types. Tests must not change the files."""
    return write_label_bundle(tmp_path_factory.mktemp("both") / "both")


@pytest.fixture(scope="session")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle without the task fill-mask. Tests must not change the files."""
    return write_label_bundle(tmp_path_factory.mktemp("labels") / "labels", fills=False)


@pytest.fixture(scope="session")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle with one label for pairs. Tests must not change the files."""
    path = tmp_path_factory.mktemp("ranker") / "ranker"
    return write_label_bundle(path, fills=False, labels=["relevant"], scale=5)


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory, both: Path, labels: Path) -> Path:
    """Directory with the bundles tiny (fills, no pairs), labels and both, in this order."""
    directory = tmp_path_factory.mktemp("bundles")
    write_bundle(directory / "1")
    (directory / "2").symlink_to(labels)
    (directory / "3").symlink_to(both)
    return directory


@pytest.fixture(scope="session")
def labels_url(
    tmp_path_factory: pytest.TempPathFactory, bundles: Path, ranker: Path
) -> Iterator[str]:
    """Address of a service process with the three models and a reranker.

    The default model classifies. Tests must change nothing in the process.
    """
    directory = tmp_path_factory.mktemp("served")
    for path in (*bundles.iterdir(), ranker):
        (directory / path.name).symlink_to(path)
    with start_process("--bundle", str(directory), "--model", "labels") as (_, url):
        yield url


@pytest.fixture(scope="module")
def client(bundles: Path) -> Iterator[TestClient]:
    """Client of a service in this process with the three models and low limits."""
    settings = Settings(bundle=bundles, threads=2, max_texts=4, max_masks=6, max_top_k=20)
    with TestClient(create_app(settings)) as test_client:
        yield test_client
