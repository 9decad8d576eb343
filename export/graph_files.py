"""A served graph and its weights, from an encoder onto disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from export.graph import served_graph
from export.int8_operators import Int8GraphBuilder
from export.int8_weights import Grams, Int8Weights
from export.operators import GraphBuilder
from export.weight_file import WeightFile
from export.weights import encoder_weights
from model.checkpoints.checkpoint import Checkpoint
from model.encoder.encoder import TiedEncoder
from model.quantization.calibration import StatisticsByBlock
from model.quantization.rounding_plan import RoundingPlan
from service.bundles.bundle import MODEL_FILE, WEIGHTS_FILE


def save_graph(
    model: TiedEncoder, max_tokens: int, directory: Path, int8: Int8Weights | None = None
) -> None:
    """Write the served graph, weight by weight, so that they need not fit in memory twice.

    Args:
        model: the encoder.
        max_tokens: longest input.
        directory: made for it.
        int8: how to round the weights; None for fp32.
    """
    weights = encoder_weights(model, max_tokens)
    directory.mkdir()
    with WeightFile(directory / WEIGHTS_FILE) as file:
        if int8 is None:
            builder = GraphBuilder(model.config, weights, file)
        else:
            builder = Int8GraphBuilder(model.config, weights, int8, file)
        graph = served_graph(builder)
    onnx.save(graph, directory / MODEL_FILE)
    # the file and not the graph in memory, which has no weights
    onnx.checker.check_model(str(directory / MODEL_FILE), full_check=True)


def int8_weights(
    checkpoint: Checkpoint, calibration: Sequence[NDArray[np.int64]], mask_token_id: int
) -> Int8Weights:
    """How to round an encoder's weights, so that little is lost on such texts.

    Args:
        checkpoint: where training has rounded the weights, they stay as they are.
        calibration: token ids of real texts.
        mask_token_id: the mask.
    """
    if checkpoint.rounding:
        return Int8Weights(checkpoint.rounding, {})
    statistics = StatisticsByBlock(checkpoint.model, calibration, mask_token_id)
    return Int8Weights(RoundingPlan.of(checkpoint.model, statistics), Grams(statistics))
