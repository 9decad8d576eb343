"""Writer of a served graph and its weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import onnx

from fillmask.bundles.bundle import MODEL_FILE, WEIGHTS_FILE
from fillmask_export.graph.int8_operators import Int8GraphBuilder
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.served import GraphHead, served_graph
from fillmask_export.graph.weight_file import WeightFile
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.quantization.weights import Int8Weights
from fillmask_model.encoder.encoder import TiedEncoder


def save_graph(
    model: TiedEncoder,
    heads: Sequence[GraphHead],
    max_tokens: int,
    token_types: int,
    directory: Path,
    int8: Int8Weights | None = None,
) -> None:
    """Write the served graph and its weights.

    The function writes one weight at a time, so that memory never contains a second copy of all
    weights.

    Args:
        model: fp32 encoder.
        directory: new directory for the files.
        int8: rounding of the weights. None for fp32.
    """
    weights = encoder_weights(model, max_tokens, token_types)
    directory.mkdir()
    with closing(WeightFile(directory / WEIGHTS_FILE)) as file:
        if int8 is None:
            builder = GraphBuilder(model.config, weights, file)
        else:
            builder = Int8GraphBuilder(model.config, weights, int8, file)
        graph = served_graph(builder, heads)
    onnx.save(graph, directory / MODEL_FILE)
    # check the file, because the graph in memory has no weights
    onnx.checker.check_model(str(directory / MODEL_FILE), full_check=True)
