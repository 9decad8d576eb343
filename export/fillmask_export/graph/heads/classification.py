"""Classification head of the served graph, always in float32.

Int8 saves almost nothing in the head, because the head reads few rows and has few weights.

Shapes: C tokens that the head reads, N texts with labels, D d_model, L labels.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from fillmask_export.graph.operators import GraphBuilder
from fillmask_model.encoder.classifier import ClassifierConfig

NAME = "classifier"


def label_logits(g: GraphBuilder, x_CD: str, classifier: ClassifierConfig) -> None:
    """Add the output `label_logits`.

    A graph with mean pooling must have the inputs `label_texts` and `label_lengths`.

    Args:
        x_CD: hidden states of the tokens that the head reads.
    """
    means = classifier.pooling == "mean"
    x_ND = _mean(g, x_CD) if means and not classifier.pool_last else x_CD
    if classifier.activation is not None:
        bias = g.bias(f"{NAME}.dense.bias")
        dense = g.gemm(x_ND, g.weight(f"{NAME}.dense.weight"), f"{NAME}.dense.bias", bias)
        x_ND = g.activate(dense, classifier.activation)
    if means and classifier.pool_last:
        x_ND = _mean(g, x_ND)
    if classifier.norm:
        x_ND = g.norm(x_ND, f"{NAME}.norm")
    bias = g.bias(f"{NAME}.output.bias")
    weight = g.weight(f"{NAME}.output.weight")
    g.gemm(x_ND, weight, f"{NAME}.output.bias", bias, ["label_logits"])


def _mean(g: GraphBuilder, x_CD: str) -> str:
    """Compute the mean hidden state (N, D) of the tokens of each text.

    A matrix product is unsuitable, because the rounding of each mean depends on the other texts.
    """
    width = g.integers(g.config.d_model)
    shape = g.add("Concat", [g.add("Shape", ["label_lengths"]), width], axis=0)
    zero = numpy_helper.from_array(np.zeros(1, np.float32))
    zeros_ND = g.add("ConstantOfShape", [shape], value=zero)
    texts_C1 = g.add("Unsqueeze", ["label_texts", g.integers(-1)])
    index_CD = g.add("Expand", [texts_C1, g.add("Shape", [x_CD])])
    sums_ND = g.add("ScatterElements", [zeros_ND, index_CD, x_CD], axis=0, reduction="add")
    lengths_N = g.add("Cast", ["label_lengths"], to=TensorProto.FLOAT)
    return g.add("Div", [sums_ND, g.add("Unsqueeze", [lengths_N, g.integers(-1)])])
