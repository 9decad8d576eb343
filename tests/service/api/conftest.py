"""Fixtures: bundles for all tasks, which tests must not change, and a service with all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.service.api.labels.bundles import write_label_bundle
from tests.service.server_process import start_process
from tests.service.serving import serving
from tests.service.sparse_bundles import verse_vocabulary, write_sparse_bundle
from tests.service.tiny import Tiny


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle for fills and labels, pairs and two token types."""
    return write_label_bundle(tmp_path_factory.mktemp("both") / "both")


@pytest.fixture(scope="session")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle without the task fill-mask."""
    return write_label_bundle(tmp_path_factory.mktemp("labels") / "labels", fills=False)


@pytest.fixture(scope="session")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle with one label for pairs."""
    path = tmp_path_factory.mktemp("ranker") / "ranker"
    return write_label_bundle(path, fills=False, labels=["relevant"], scale=5)


@pytest.fixture(scope="session")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle for sparse vectors, whose queries need a pass."""
    return write_sparse_bundle(tmp_path_factory.mktemp("splade") / "splade")


@pytest.fixture(scope="session")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle for sparse vectors of at most 7 dimensions, whose queries need no pass."""
    weights = [index / 8 for index in range(verse_vocabulary().get_vocab_size())]
    path = tmp_path_factory.mktemp("static") / "static"
    return write_sparse_bundle(path, max_active_dims=7, query_weights=weights)


@pytest.fixture(scope="session")
def bundles(
    tmp_path_factory: pytest.TempPathFactory,
    tiny: Tiny,
    labels: Path,
    both: Path,
    ranker: Path,
    splade: Path,
    static: Path,
) -> Path:
    """Directory with the bundles of all fixtures, in this order."""
    directory = tmp_path_factory.mktemp("bundles")
    for place, path in enumerate((tiny.path, labels, both, ranker, splade, static), start=1):
        (directory / str(place)).symlink_to(path)
    return directory


@pytest.fixture(scope="session")
def every_model(bundles: Path) -> Iterator[TestClient]:
    """Client of a service in this process with all models and low limits."""
    aliases = "rerank-v3.5=ranker, BAAI/bge-reranker-base=ranker"
    with serving(
        bundles, threads=2, max_texts=4, max_masks=6, max_top_k=20, served_name=aliases
    ) as client:
        yield client


@pytest.fixture(scope="session")
def labels_url(bundles: Path) -> Iterator[str]:
    """Address of a service process with all models, whose default model classifies.

    Tests must change nothing in the process.
    """
    with start_process("--bundle", str(bundles), "--model", "labels") as (_, url):
        yield url
