"""Metadata of models in the format of the Open Inference Protocol."""

from collections.abc import Iterable, Mapping
from typing import Any

from fillmask.api.operations import MODEL_VERSION
from fillmask.bundles.description import Task

PLATFORM = "onnxruntime_onnx"
TEXT, TEXT_PAIR, TARGETS = "text", "text_pair", "targets"
# name of an output tensor -> (datatype, number of axes), by task
OUTPUTS: Mapping[Task, Mapping[str, tuple[str, int]]] = {
    "fill-mask": {
        "text_index": ("INT64", 1),
        "token": ("INT64", 2),
        "token_str": ("BYTES", 2),
        "score": ("FP32", 2),
        "sequence": ("BYTES", 2),
    },
    "text-classification": {"label": ("BYTES", 2), "score": ("FP32", 2)},
}


def metadata(model: str, tasks: Iterable[Task], *, pairs: bool) -> dict[str, Any]:
    """Return the metadata of a model, with the tensors of all its tasks in their order."""
    tasks = list(tasks)
    inputs = [TEXT, *[TEXT_PAIR] * pairs, *[TARGETS] * ("fill-mask" in tasks)]
    outputs = {name: axes for task in tasks for name, axes in OUTPUTS.get(task, {}).items()}
    return {
        "name": model,
        "versions": [MODEL_VERSION],
        "platform": PLATFORM,
        "inputs": [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in inputs],
        "outputs": [
            {"name": name, "datatype": datatype, "shape": [-1] * axes}
            for name, (datatype, axes) in outputs.items()
        ],
    }
