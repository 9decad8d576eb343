"""Fixtures: bundles with sparse vectors, and a service with one for fills before them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.service.sparse_bundles import verse_vocabulary, write_sparse_bundle
from tests.service.tiny import write_bundle


@pytest.fixture(scope="session")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle whose queries need a pass. Tests must not change the files."""
    return write_sparse_bundle(tmp_path_factory.mktemp("splade") / "splade")


@pytest.fixture(scope="session")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle whose queries need no pass, with at most 7 dimensions."""
    weights = [index / 8 for index in range(verse_vocabulary().get_vocab_size())]
    path = tmp_path_factory.mktemp("static") / "static"
    return write_sparse_bundle(path, max_active_dims=7, query_weights=weights)


@pytest.fixture(scope="module")
def client(
    tmp_path_factory: pytest.TempPathFactory, splade: Path, static: Path
) -> Iterator[TestClient]:
    """Client of a service with the models tiny (fills), splade and static."""
    bundles = tmp_path_factory.mktemp("bundles")
    write_bundle(bundles / "1")
    (bundles / "2").symlink_to(splade)
    (bundles / "3").symlink_to(static)
    settings = Settings(bundle=bundles, threads=2, max_texts=4)
    with TestClient(create_app(settings)) as test_client:
        yield test_client
