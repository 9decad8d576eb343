"""The heads of a bundle's graph, one for each of its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from fillmask.bundles.bundle import MODEL_FILE, WEIGHTS_FILE
from fillmask.engine.runtime import Runtime
from fillmask_export.heads.classify import Classify
from fillmask_export.heads.classify_tokens import ClassifyTokens
from fillmask_export.heads.fill_mask import FillMask
from fillmask_export.heads.head import Expected, Head
from fillmask_export.heads.samples import Samples
from fillmask_export.heads.sparse import Sparse
from fillmask_model.checkpoints.checkpoint import (
    FILL_MASK,
    SPARSE,
    TEXT_CLASSIFICATION,
    TOKEN_CLASSIFICATION,
    Checkpoint,
)
from fillmask_model.memory import page_out_files

HEADS: dict[str, type[Head]] = {
    FILL_MASK: FillMask,
    TEXT_CLASSIFICATION: Classify,
    TOKEN_CLASSIFICATION: ClassifyTokens,
    SPARSE: Sparse,
}


def heads_of(checkpoint: Checkpoint) -> list[Head]:
    """Return the heads of a checkpoint, in the order of its tasks."""
    return [HEADS[task].of(checkpoint) for task in checkpoint.tasks]


def compare(expected: Mapping[str, Expected], exact: Path, served: Path) -> dict[str, Any]:
    """Compare the fp32 graph and the served graph with the results of PyTorch.

    Args:
        expected: PyTorch's results by the field of their figures.
        exact: directory of the fp32 graph.
        served: directory of the served graph.

    Returns:
        The verification figures of bundle.json.

    Raises:
        VerificationError: the results differ by more than the limits of a head.
    """
    with page_out_files(WEIGHTS_FILE):
        runtime = Runtime(exact / MODEL_FILE, torch.get_num_threads(), pack=exact == served)
        figures = {field: {"graph": one.compare(runtime)} for field, one in expected.items()}
        del runtime
    if exact != served:
        runtime = Runtime(served / MODEL_FILE, torch.get_num_threads())
        for field, one in expected.items():
            figures[field]["int8"] = one.measure(runtime)
    return figures.pop("", {}) | figures


def golden_results(
    samples: Samples, runtime: Runtime, figures: Mapping[str, Any]
) -> dict[str, Any]:
    """Create the `golden` field of bundle.json.

    Args:
        runtime: runtime with the bundle's graph.
        figures: verification figures of the bundle.

    Raises:
        VerificationError: no text has at most `max_tokens` tokens.
    """
    golden: dict[str, Any] = {"prompts": []}
    for task in runtime.tasks:
        head = HEADS[task]
        own = figures[head.field] if head.field else figures
        golden |= head.golden(samples, runtime, own.get("int8"))
    return golden
