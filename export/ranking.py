"""The end of the served graph: log-probabilities of the best tokens of each mask, and of targets.

A few masks at a time, in a loop: of many, logits would take more memory than all the rest.

Shapes: M masks, D d_model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from export.operators import GraphBuilder, float_tensor, integer_tensor

ROUND = 16  # masks whose logits are computed together


def rank(g: GraphBuilder, x_MD: str, masks: str) -> None:
    """Add the outputs `top_ids`, `top_log_probs` and `target_log_probs`.

    Reads the inputs `top_k` and `target_ids`.

    Args:
        g: the graph so far.
        x_MD: hidden states at the masks, ready for the vocabulary.
        masks: a tensor of one axis with M entries.
    """
    count_1 = g.add("Shape", [masks])
    rounds_1 = g.add("Div", [g.add("Add", [count_1, g.integers(ROUND - 1)]), g.integers(ROUND)])
    rounds = g.add("Reshape", [rounds_1, g.integers()])
    no_ids = g.add("Concat", [g.integers(0), "top_k"], axis=0)
    no_targets = g.add("Shape", ["target_ids"], start=1)
    no_targets = g.add("Concat", [g.integers(0), no_targets], axis=0)
    nothing = [
        g.add("ConstantOfShape", [no_ids], value=_zero(np.int64)),
        g.add("ConstantOfShape", [no_ids], value=_zero(np.float32)),
        g.add("ConstantOfShape", [no_targets], value=_zero(np.float32)),
    ]
    names = ("top_ids", "top_log_probs", "target_log_probs")
    inputs = [
        helper.make_tensor_value_info("round", TensorProto.INT64, []),
        helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
        *_results([f"{name}_before" for name in names]),
    ]
    outputs = [
        helper.make_tensor_value_info("go_on_after", TensorProto.BOOL, []),
        *_results([f"{name}_after" for name in names]),
    ]
    with g.subgraph(inputs, outputs) as body:
        g.add("Identity", ["go_on"], ["go_on_after"])
        round_1 = g.add("Reshape", ["round", g.integers(-1)])
        start = g.add("Mul", [round_1, g.integers(ROUND)])
        end = g.add("Add", [start, g.integers(ROUND)])
        x = g.add("Slice", [x_MD, start, end])
        targets = g.add("Slice", ["target_ids", start, end])
        log_probs = g.add("LogSoftmax", [g.vocabulary(x, x)], axis=-1)
        g.add("TopK", [log_probs, "top_k"], ["some_log_probs", "some_ids"], axis=-1)
        some_targets = g.add("GatherElements", [log_probs, targets], axis=-1)
        for name, some in zip(names, ("some_ids", "some_log_probs", some_targets), strict=True):
            g.add("Concat", [f"{name}_before", some], [f"{name}_after"], axis=0)
    g.add("Loop", [rounds, "", *nothing], names, body=body)


def _results(names: Sequence[str]) -> list[onnx.ValueInfoProto]:
    ids, log_probs, targets = names
    return [
        integer_tensor(ids, None, None),
        float_tensor(log_probs, None, None),
        float_tensor(targets, None, None),
    ]


def _zero(kind: type[np.generic]) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(1, kind))
