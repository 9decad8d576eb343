"""The fused graph of a bundle in int8, compared with the stock graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from fillmask.bundles.bundle import (
    DESCRIPTION_FILE,
    FUSED_FILE,
    SCHEMA_VERSION,
    Bundle,
)
from fillmask.engine.linux.native_operators import find_operators
from fillmask.engine.runtime import Runtime
from fillmask_export.bundle.description_fields import file_fields, write_description
from fillmask_export.graph.fused.graph import fuse, packed_weights
from fillmask_export.graph.fused.graph_reader import OPERATORS_VERSION
from fillmask_export.heads.errors import VerificationError
from fillmask_export.heads.head import Head
from fillmask_export.heads.samples import Samples
from fillmask_export.heads.tasks import HEADS, golden_results
from fillmask_model.files import atomic_replace


def add_fused_graph(bundle: Bundle, texts: Sequence[str]) -> dict[str, Any] | None:
    """Write the fused graph of a bundle, and its golden results into bundle.json.

    Args:
        texts: plain sentences without masks, for the golden results.

    Returns:
        The comparison with the stock graph, or None for a bundle without int8 layers: how many
        numbers both graphs have (log-probabilities in nats, logits and weights of sparse vectors),
        and the mean and the largest absolute difference.

    Raises:
        OperatorsUnavailableError: this machine does not have fillmask-native.
        VerificationError: the results differ from those of the stock graph by more than the
            rounding of another CPU.
    """
    path = bundle.path
    stock = onnx.load(bundle.model_path, load_external_data=False)
    graph = fuse(stock, bundle.architecture.d_model)
    if graph is None:
        return None
    operators = find_operators(OPERATORS_VERSION, fast=False)
    packed = packed_weights(graph)
    with atomic_replace(path / FUSED_FILE) as file:
        onnx.save(graph, file)
        runtime = Runtime(file, operators=operators, packed=packed)
        golden = golden_results(Samples.of_bundle(bundle, texts), runtime, bundle.verification)
        figures = _compare(bundle, golden)
    description = json.loads((path / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    description["schema_version"] = SCHEMA_VERSION
    description["files"][FUSED_FILE] = file_fields(path / FUSED_FILE)
    description["verification"]["fused"] = figures
    description["fused"] = {
        "operators": OPERATORS_VERSION,
        "packed_weights": [{"offset": offset, "bytes": size} for offset, size in packed],
        "golden": golden,
    }
    write_description(description, path / DESCRIPTION_FILE)
    return figures


def _compare(bundle: Bundle, golden: dict[str, Any]) -> dict[str, Any]:
    stock = bundle.golden.model_dump()
    everything: list[float] = []
    for head in HEADS.values():
        kind = head.records
        expected, found = (_numbers(head, results.get(kind) or ()) for results in (stock, golden))
        if not expected:
            continue
        differences = [abs(found[key] - expected[key]) for key in found.keys() & expected.keys()]
        everything += differences
        tolerance = head.tolerance(bundle)
        mean, largest = float(np.mean(differences)), float(np.max(differences))
        if not (mean <= tolerance.mean and largest <= tolerance.largest):  # also true for NaN
            raise VerificationError(
                f"the golden {kind} of the fused graph must match those of the stock graph to "
                f"{tolerance.largest:.2g}, and to {tolerance.mean:.2g} on average (got "
                f"{largest:.2g} and {mean:.2g}); report a bug of fillmask-native"
            )
    return {
        "numbers": len(everything),
        "mean_difference": float(np.mean(everything)),
        "max_difference": float(np.max(everything)),
    }


def _numbers(head: type[Head], results: Sequence[dict[str, Any]]) -> dict[Any, float]:
    """Return the numbers of golden results by their text and their place in its result."""
    return {
        (text, place): number
        for text, one in enumerate(results)
        for place, number in head.numbers(one).items()
    }
