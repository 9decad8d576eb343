"""Fields of bundle.json for sparse vectors."""

from collections.abc import Callable
from typing import Any

import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask.errors import BundleError
from tests.service.conftest import EditBundle


def _sparse(bundle: dict[str, Any]) -> None:
    """Turn the description of the tiny model into that of a model with sparse vectors."""
    bundle |= {
        "tasks": ["sparse"],
        "sparse": {"pooling": "max", "activation": "relu"},
        "golden": {
            "prompts": [],
            "weight_tolerance": 0.002,
            "vectors": [{"text": "The tea.", "weights": [{"token": 7, "weight": 0.5}]}],
        },
    }


def test_reads_what_was_written(edit_bundle: EditBundle) -> None:
    bundle = read_bundle(edit_bundle(_sparse))
    assert bundle.sparse is not None
    assert bundle.sparse.query_weights is None
    [golden] = bundle.golden.vectors
    assert (golden.weights[0].token, golden.weights[0].weight) == (7, 0.5)


def _change(**fields: object) -> Callable[[dict[str, Any]], None]:
    def change(bundle: dict[str, Any]) -> None:
        _sparse(bundle)
        bundle["sparse"] |= fields

    return change


def _without(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(bundle: dict[str, Any]) -> None:
        _sparse(bundle)
        inner = bundle
        for name in path[:-1]:
            inner = inner[name]
        del inner[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_change(pooling="mean"), "pooling"),
        (_change(max_active_dims=0), "max_active_dims"),
        (_change(query_weights=[0.5]), "query_weights must have one weight per token"),
        (_change(query_weights=[-1.0]), "query_weights"),
        (_without("sparse"), "sparse must be present if and only if tasks contains sparse"),
        (_without("golden", "vectors"), "golden.vectors must have entries"),
        (_without("golden", "weight_tolerance"), "golden.weight_tolerance is missing"),
    ],
)
def test_a_wrong_field_is_refused(
    edit_bundle: EditBundle, change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    with pytest.raises(BundleError, match=reason):
        read_bundle(edit_bundle(change))
