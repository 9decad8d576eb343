"""The contenders, one module each.

Each module has two functions of a workspace and a number of CPUs, `busy`, its rows with many
clients, and `alone`, its rows with one text at a time. `variants` returns its rows without HTTP.
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

MODULES = (fillmask, transformers_pipeline, onnxruntime, openvino, ctranslate2)  # as they are shown


def busy(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return the rows with many clients, in the order of measurement."""
    return [row for module in MODULES for row in module.busy(workspace, cpus)]


def alone(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return the rows with one text at a time and all CPUs.

    onnxruntime and OpenVINO get the graph that computes logits only at the masks, which favours
    them: a user's own export computes logits at every position.
    """
    return [row for module in MODULES for row in module.alone(workspace, cpus)]


def variants(workspace: Workspace) -> dict[str, Variant]:
    """Return the rows without HTTP by name. Only fillmask also ranks the tokens."""
    modules = [module for module in MODULES if hasattr(module, "variants")]
    return {row.name: row for module in modules for row in module.variants(workspace)}
