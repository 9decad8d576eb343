"""Fixtures: a bundle for each task, with a service and a model in Python."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.library import FillMask
from tests.service.classifiers import write_classifier
from tests.service.serving import serving
from tests.service.sparse_bundles import write_sparse_bundle
from tests.service.taggers import write_tagger
from tests.service.tiny import Tiny

NAMES = {"fill-mask": "fill", "classify-tokens": "classify_tokens"}  # of methods, by task


@pytest.fixture(scope="session")
def bundles(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Bundle for each task."""
    directory = tmp_path_factory.mktemp("classifiers")
    return {
        "fill-mask": tiny.path,
        "score": tiny.path,
        "classify": write_classifier(directory / "topics"),
        "classify-tokens": write_tagger(directory / "tagger"),
        "rerank": write_classifier(directory / "ranker", labels=("relevant",)),
        "embed_sparse": write_sparse_bundle(directory / "splade"),
    }


@pytest.fixture(scope="session")
def clients(bundles: dict[str, Path]) -> Iterator[dict[str, TestClient]]:
    """Services with the limits of the command and of Python, such as the vocabulary for top_k."""
    with ExitStack() as stack:
        by_path = {
            path: stack.enter_context(serving(path, max_top_k=10**6, max_passes=2**16))
            for path in set(bundles.values())
        }
        yield {task: by_path[path] for task, path in bundles.items()}


@pytest.fixture(scope="session")
def methods(bundles: dict[str, Path]) -> Iterator[dict[str, Any]]:
    """Methods of the models in Python."""
    with ExitStack() as stack:
        by_path = {
            path: stack.enter_context(FillMask(path, threads=1)) for path in set(bundles.values())
        }
        yield {
            task: getattr(by_path[path], NAMES.get(task, task)) for task, path in bundles.items()
        }
