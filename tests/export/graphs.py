"""Served graphs of small random encoders, and comparisons of their results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fillmask.bundles.bundle import MODEL_FILE
from fillmask.engine.passes import PassOutputs
from fillmask_export.graph.served import save_graph
from fillmask_export.heads.tasks import heads_of
from fillmask_export.quantization.weights import int8_weights
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.encoder import TiedEncoder

# the same text beside other texts: nats or logits; fp32 and int8
NEIGHBOUR_TOLERANCES = {False: 1e-5, True: 2e-3}
in_both_precisions = pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])


def filling(model: TiedEncoder) -> Checkpoint:
    """Return a checkpoint that fills masks."""
    return Checkpoint(model, None, head_is_new=False)


def write_graph(
    directory: Path, checkpoint: Checkpoint, *, int8: bool = False, token_types: int = 1
) -> Path:
    """Write the served graph of a checkpoint, in int8 calibrated with random tokens."""
    config, rounding = checkpoint.model.config, None
    if int8:
        generator = np.random.default_rng(4)
        longest = min(config.max_positions, 16)
        texts = [generator.integers(0, config.vocab_size, longest) for _ in range(20)]
        mask_id = config.token_dropout_id or 0
        rounding = int8_weights(checkpoint, texts, mask_id, directory)
    graph, heads = directory / "graph", heads_of(checkpoint)
    save_graph(checkpoint.model, heads, config.max_positions, token_types, graph, rounding)
    return graph / MODEL_FILE


def assert_same_fills(first: PassOutputs, second: PassOutputs, tolerance: float) -> None:
    np.testing.assert_array_equal(first.top_ids, second.top_ids)
    for name in ("top_log_probs", "target_log_probs"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=tolerance)
