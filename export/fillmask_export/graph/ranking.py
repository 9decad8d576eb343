"""Ranking of top tokens and targets at the end of the served graph.

A loop ranks a few masks at a time, because the logits of many masks take more memory than the rest
of the graph. A large vocabulary has several parts with one loop per part. The runtime then packs
the weights of one loop at a time and frees them afterwards (docs/decisions/008).

Shapes: M masks, D d_model, P parts, k top tokens, K targets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from fillmask_export.graph.nodes import float_tensor, integer_tensor
from fillmask_export.graph.operators import GraphBuilder

MASKS_PER_ROUND = 16  # number of masks whose logits are in memory at a time
_RESULTS = ("top_ids", "top_log_probs", "target_log_probs")


def rank(g: GraphBuilder, x_MD: str, masks: str) -> None:
    """Add the outputs `top_ids`, `top_log_probs` and `target_log_probs`.

    The graph must have the inputs `top_k` and `target_ids`.

    Args:
        x_MD: outputs of the head at the masks.
        masks: tensor with one axis of M entries.
    """
    parts = g.vocabulary_parts
    if len(parts) == 1:
        _rank_part(g, x_MD, masks, parts[0], "top_k", "target_ids", _RESULTS)
        return
    ids, log_probs, targets, totals = zip(
        *(_rank_among_parts(g, x_MD, masks, part) for part in parts), strict=True
    )
    totals_MP = g.add("Concat", totals, axis=1)
    shares_MP = g.add("LogSoftmax", [totals_MP], axis=-1)
    shares = [_column(g, shares_MP, i) for i in range(len(parts))]
    best = [g.add("Add", pair) for pair in zip(log_probs, shares, strict=True)]
    candidates = g.add("Concat", best, axis=1)
    g.add("TopK", [candidates, "top_k"], ["top_log_probs", "best_places"], axis=-1)
    g.add("GatherElements", [g.add("Concat", ids, axis=1), "best_places"], ["top_ids"], axis=-1)
    found = [g.add("Add", pair) for pair in zip(targets, shares, strict=True)]
    g.add("Max", found, ["target_log_probs"])


def _rank_among_parts(
    g: GraphBuilder, x_MD: str, masks: str, part: slice
) -> tuple[str, str, str, str]:
    """Rank one part of the vocabulary.

    Log-probabilities are relative to the part. Targets in other parts have a log-probability of
    minus infinity.

    Returns:
        The top ids (M, k), their log-probabilities (M, k), the log-probabilities of the targets
        (M, K) and the log-sum-exp (M, 1) of the part's logits.
    """
    size = part.stop - part.start
    names = [f"{name}_{part.start}" for name in (*_RESULTS, "total")]
    local_targets = g.add("Sub", ["target_ids", g.integers(part.start)])
    inside = g.add("Min", [g.add("Max", [local_targets, g.integers(0)]), g.integers(size - 1)])
    top_k = g.add("Min", ["top_k", g.integers(size)])
    _rank_part(g, x_MD, masks, part, top_k, inside, names)
    ids, log_probs, targets, total = names
    elsewhere = g.scalar("minus_infinity", -np.inf)
    targets = g.add("Where", [g.add("Equal", [local_targets, inside]), targets, elsewhere])
    return g.add("Add", [ids, g.integers(part.start)]), log_probs, targets, total


def _rank_part(
    g: GraphBuilder,
    x_MD: str,
    masks: str,
    part: slice,
    top_k: str,
    target_ids: str,
    names: Sequence[str],
) -> None:
    """Add the loop over masks.

    With four names, the fourth output is the log-sum-exp of each mask's logits.
    """
    count_1 = g.add("Shape", [masks])
    rounds_1 = g.add(
        "Div",
        [g.add("Add", [count_1, g.integers(MASKS_PER_ROUND - 1)]), g.integers(MASKS_PER_ROUND)],
    )
    rounds = g.add("Reshape", [rounds_1, g.integers()])
    no_ids = g.add("Concat", [g.integers(0), top_k], axis=0)
    no_targets = g.add("Shape", [target_ids], start=1)
    no_targets = g.add("Concat", [g.integers(0), no_targets], axis=0)
    nothing = [
        g.add("ConstantOfShape", [no_ids], value=_zero(np.int64)),
        g.add("ConstantOfShape", [no_ids], value=_zero(np.float32)),
        g.add("ConstantOfShape", [no_targets], value=_zero(np.float32)),
    ]
    if len(names) > len(nothing):
        nothing.append(g.add("ConstantOfShape", [g.integers(0, 1)], value=_zero(np.float32)))
    label = f"_{part.start}" if part.start else ""
    before, after = (_results([f"{name}_{when}" for name in names]) for when in ("before", "after"))
    with g.loop("round", "go_on", before, after, label) as body:
        round_1 = g.add("Reshape", [f"round{label}", g.integers(-1)])
        start = g.add("Mul", [round_1, g.integers(MASKS_PER_ROUND)])
        end = g.add("Add", [start, g.integers(MASKS_PER_ROUND)])
        x = g.add("Slice", [x_MD, start, end])
        targets = g.add("Slice", [target_ids, start, end])
        logits = g.vocabulary(x, x, part)
        log_probs = g.add("LogSoftmax", [logits], axis=-1)
        some_log_probs, some_ids = f"some_log_probs{label}", f"some_ids{label}"
        g.add("TopK", [log_probs, top_k], [some_log_probs, some_ids], axis=-1)
        some_targets = g.add("GatherElements", [log_probs, targets], axis=-1)
        results = [some_ids, some_log_probs, some_targets]
        if len(names) > len(results):
            # the log-sum-exp is the difference of logits and log-probabilities in any column
            results.append(g.add("Sub", [_column(g, x, 0) for x in (logits, log_probs)]))
        for name, result in zip(names, results, strict=True):
            g.add("Concat", [f"{name}_before", result], [f"{name}_after"], axis=0)
    g.add("Loop", [rounds, "", *nothing], names, body=body)


def _column(g: GraphBuilder, x: str, number: int) -> str:
    return g.add("Slice", [x, g.integers(number), g.integers(number + 1), g.integers(1)])


def _results(names: Sequence[str]) -> list[onnx.ValueInfoProto]:
    ids, *floats = names
    return [integer_tensor(ids, None, None), *(float_tensor(name, None, None) for name in floats)]


def _zero(kind: type[np.generic]) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(1, kind))
