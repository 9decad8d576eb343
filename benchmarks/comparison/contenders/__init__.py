"""The contenders, one module each.

Each module has up to three functions of a workspace and a number of CPUs: `busy`, its rows with
many clients, `alone`, its rows with one text at a time, and `variants`, its rows without HTTP.
"""

from __future__ import annotations

from benchmarks.comparison.contenders import (
    ctranslate2,
    fillmask,
    onnxruntime,
    openvino,
    transformers_pipeline,
)
from benchmarks.comparison.contenders.contender import Contender, Variant
from benchmarks.comparison.workspace import Workspace


def busy(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return the rows with many clients, in the order of measurement."""
    return [
        *fillmask.busy(workspace),
        *transformers_pipeline.busy(workspace, cpus),
        *onnxruntime.busy(workspace, cpus),
        *openvino.busy(workspace, cpus),
        *ctranslate2.busy(workspace, cpus),
    ]


def alone(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return the rows with one text at a time and all CPUs.

    onnxruntime and OpenVINO get the graph that computes logits only at the masks, which favours
    them: a user's own export computes logits at every position.
    """
    return [
        *fillmask.busy(workspace),
        *transformers_pipeline.alone(workspace, cpus),
        *onnxruntime.alone(workspace, cpus),
        *openvino.alone(workspace, cpus),
        *ctranslate2.alone(workspace, cpus),
    ]


def variants(workspace: Workspace) -> dict[str, Variant]:
    """Return the rows without HTTP by name. Only fillmask also ranks the tokens."""
    rows = [
        *fillmask.variants(workspace),
        *onnxruntime.variants(workspace),
        *openvino.variants(workspace),
        *ctranslate2.variants(workspace),
    ]
    return {row.name: row for row in rows}
