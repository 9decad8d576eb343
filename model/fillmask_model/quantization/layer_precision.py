"""Precision of each layer in int8 graphs, by its name.

Every linear layer is in int8, except those that `is_int8_linear` excludes, and so is the output
projection. The served graph (`fillmask_export.graph.int8_operators`) must agree: it has no float32
form of a layer of a block. A few input channels of a layer can stay in float32
(`fillmask_model.quantization.rounding_plan`).
"""

from __future__ import annotations

from torch import nn

VOCABULARY = "vocabulary"  # name of the output projection in statistics and plans
HEAD = "head."  # name prefix of the layers of the masked-language-model head
# name of a small projection that stays in float32, because every layer depends on its output
FLOAT_PROJECTION = "embeddings.projection"
# layers of a block by name, with the layer that has the same input
_SHARED_INPUT = {"key": "query", "value": "query", "ffn_gate": "ffn_in"}


def is_int8_linear(name: str, module: nn.Module) -> bool:
    """Return whether int8 graphs compute a module of the encoder in int8."""
    in_float32 = name == FLOAT_PROJECTION or name.startswith("classifier.")
    return isinstance(module, nn.Linear) and not in_float32


def shared_input_name(name: str) -> str:
    """Return the name of the first layer of the block with the same input."""
    block, _, part = name.rpartition(".")
    return f"{block}.{_SHARED_INPUT[part]}" if part in _SHARED_INPUT else name
