"""Sparse vectors: pooling of logits to one vector per text, compared with PyTorch.

A loop over the texts contains a loop over blocks of rows. Each block of rows is multiplied by one
block of columns after the other, so that the logits stay in the CPU's cache. The logits of all
tokens of a text are never in memory.

Shapes: C tokens of all texts that the head reads, S slots that a head reads, N texts, T tokens,
D d_model, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from onnx import numpy_helper

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask.tasks.sparse.golden import weight_tolerance
from fillmask.tasks.sparse.results import SparseVector
from fillmask_export.graph.nodes import float_tensor, integer_tensor
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.served import Ends
from fillmask_export.heads.errors import require_int8
from fillmask_export.heads.head import ExpectedNumbers, Head, encoder_logits, golden_tolerance
from fillmask_export.heads.samples import Samples, text_fields
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling, SparseSettings

ROWS, COLUMNS = 256, 2048  # sizes of a block of logits
HALVINGS = 3  # how often the rows of a block are halved by their maxima
LENGTHS = "sparse_lengths"
REAL_TEXTS = 64  # maximum number of real texts, because each has V weights
GOLDEN_WEIGHTS = 20  # largest weights of a sparse vector
STRONGEST = 100  # number of dimensions to compare between int8 and fp32
MIN_OVERLAP = 0.9  # minimum mean share of the strongest dimensions of fp32 that int8 shares
MAX_DOT_DIFFERENCE = 0.05  # maximum mean difference of dot products, relative to fp32


@dataclass(frozen=True, slots=True)
class Sparse(Head):
    """Head with the output `sparse_weights` (N, V)."""

    slots = "sparse_slots"
    field, records = "vectors", "vectors"
    tolerance = staticmethod(weight_tolerance)
    settings: SparseSettings

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        assert checkpoint.sparse is not None  # noqa: S101 - the task needs it
        return cls(checkpoint.sparse)

    def description(self) -> dict[str, Any]:
        pooling = self.settings.pooling
        fields: dict[str, Any] = {"pooling": pooling.strategy, "activation": pooling.activation}
        fields["max_active_dims"] = self.settings.max_active_dims
        fields["query_weights"] = self.settings.query_weights
        return {"sparse": fields}

    def add(self, g: GraphBuilder, x_SD: str, rows: str, own: Callable[[str], str]) -> Ends:
        x_CD = own(g.head_transform(x_SD, rows))
        _pool(g, x_CD, self.settings.pooling)
        inputs = [integer_tensor(self.slots, "C"), integer_tensor(LENGTHS, "N")]
        return Ends(inputs, [float_tensor("sparse_weights", "N", g.config.vocab_size)])

    def expect(self, model: TiedEncoder, samples: Samples) -> ExpectedVectors:
        """Compute the weights of real texts and of random tokens."""
        return ExpectedVectors.from_samples(model, self.settings.pooling, samples)

    @classmethod
    def golden(
        cls, samples: Samples, runtime: Runtime, int8: dict[str, Any] | None
    ) -> dict[str, Any]:
        vectors: list[dict[str, Any]] = [
            {**text_fields(text), "weights": weights}
            for text, one in samples.golden(masked=False)
            if (weights := _largest_weights(runtime, one.input_ids))
        ]
        p99 = None if int8 is None else int8["p99_weight_difference"]
        largest = max(one["weights"][0]["weight"] for one in vectors)
        return {"vectors": vectors, "weight_tolerance": golden_tolerance(p99, largest)}

    @staticmethod
    def numbers(record: dict[str, Any]) -> dict[tuple[int, ...], float]:
        return {(one["token"],): one["weight"] for one in record["weights"]}


def _largest_weights(runtime: Runtime, input_ids: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return the largest weights of the sparse vector of a text, largest first."""
    [weights_V] = runtime.run(Batch.pack([ModelPass.for_head(input_ids, None, "mean")])).pooled
    vector = SparseVector.from_weights(weights_V, GOLDEN_WEIGHTS)
    pairs = zip(vector.indices.tolist(), vector.values.tolist(), strict=True)
    ranked = sorted(pairs, key=lambda one: -one[1])
    return [{"token": token, "weight": round(weight, 5)} for token, weight in ranked]


def _pool(g: GraphBuilder, x_CD: str, pooling: SparsePooling) -> None:
    """Add the output `sparse_weights` (N, V).

    The graph must have the input `sparse_lengths` with the number of rows of each text.

    Args:
        x_CD: outputs of the head, ordered by text.
    """
    lowest = np.full(1, -np.inf if pooling.strategy == "max" else 0, np.float32)
    shape_1V = g.integers(1, g.config.vocab_size)
    nothing = g.add("ConstantOfShape", [shape_1V], value=numpy_helper.from_array(lowest))
    starts = range(0, g.config.vocab_size, COLUMNS)
    parts = [slice(s, min(s + COLUMNS, g.config.vocab_size)) for s in starts]
    columns = dict(zip(g.columns(parts), parts, strict=True))
    inputs = [integer_tensor("start", 1)]
    outputs = [integer_tensor("end", 1), float_tensor("weights", g.config.vocab_size)]
    with g.loop("text", "go_on", inputs, outputs) as body:
        length = g.add("Gather", [LENGTHS, g.add("Reshape", ["text", g.integers(1)])])
        g.add("Add", ["start", length], ["end"])
        pooled = _pool_text(g, x_CD, pooling, columns, length, nothing)
        if pooling.strategy == "max":
            # after the maximum, because bias and activation keep the order of the rows
            pooled = _activate(g, _add_bias(g, pooled), pooling)
        g.add("Reshape", [pooled, g.integers(g.config.vocab_size)], ["weights"])
    texts = g.add("Reshape", [g.add("Shape", [LENGTHS]), g.integers()])
    g.add("Loop", [texts, "", g.integers(0)], ["end_of_last", "sparse_weights"], body=body)


def _pool_text(
    g: GraphBuilder,
    x_CD: str,
    pooling: SparsePooling,
    columns: dict[str, slice],
    length: str,
    nothing: str,
) -> str:
    """Pool the logits (1, V) of the rows from `start` to `end`.

    Args:
        columns: parts of the table (`GraphBuilder.columns`) with their rows.
        length: number of the rows.
        nothing: pooled logits (1, V) of no rows.
    """
    rounds = g.add("Div", [g.add("Add", [length, g.integers(ROWS - 1)]), g.integers(ROWS)])
    before, after = (
        float_tensor(name, 1, g.config.vocab_size) for name in ("pooled_before", "pooled_after")
    )
    with g.loop("round", "more", [before], [after]) as body:
        round_1 = g.add("Reshape", ["round", g.integers(1)])
        first = g.add("Add", ["start", g.add("Mul", [round_1, g.integers(ROWS)])])
        last = g.add("Min", ["end", g.add("Add", [first, g.integers(ROWS)])])
        if pooling.strategy == "max":
            x = _repeat_last_row(g, x_CD, first, last)
            products = g.column_products(x, x, list(columns))
            pooled = g.add("Concat", [_largest(g, one) for one in products], axis=1)
            g.add("Max", ["pooled_before", pooled], ["pooled_after"])
        else:
            x = g.add("Slice", [x_CD, first, last, g.integers(0)])
            products = g.column_products(x, x, list(columns))
            logits = map(partial(_add_bias, g), products, columns.values())
            weights = [_activate(g, one, pooling) for one in logits]
            sums = [g.add("ReduceSum", [one, g.integers(0)], keepdims=1) for one in weights]
            g.add("Add", ["pooled_before", g.add("Concat", sums, axis=1)], ["pooled_after"])
    rounds = g.add("Reshape", [rounds, g.integers()])
    return g.add("Loop", [rounds, "", nothing], ["pooled"], body=body)


def _repeat_last_row(g: GraphBuilder, x_CD: str, first: str, last: str) -> str:
    """Gather rows, and the last row again until their number is a multiple of 2 ** HALVINGS."""
    multiple = 2**HALVINGS
    count = g.add("Sub", [last, first])
    rounded = g.add("Add", [count, g.integers(multiple - 1)])
    rounded = g.add("Mul", [g.add("Div", [rounded, g.integers(multiple)]), g.integers(multiple)])
    ends = [
        g.add("Reshape", [one, g.integers()]) for one in (first, g.add("Add", [first, rounded]))
    ]
    places = g.add("Range", [*ends, g.add("Reshape", [g.integers(1), g.integers()])])
    return g.add("Gather", [x_CD, g.add("Min", [places, g.add("Sub", [last, g.integers(1)])])])


def _largest(g: GraphBuilder, logits: str) -> str:
    """Compute the maximum of each column.

    ReduceMax over the first axis takes three times as long as the maxima of halves.
    """
    for _ in range(HALVINGS):
        halves = [f"half_{g.next_number()}" for _ in range(2)]
        g.add("Split", [logits], halves, axis=0, num_outputs=2)
        logits = g.add("Max", halves)
    return g.add("ReduceMax", [logits, g.integers(0)], keepdims=1)


def _add_bias(g: GraphBuilder, logits: str, part: slice = slice(None)) -> str:
    name = "head_bias" if part.start is None else f"head_bias.{part.start}"
    bias = g.bias("head_bias")
    return g.add_bias(logits, name, None if bias is None else bias[part])


def _activate(g: GraphBuilder, logits: str, pooling: SparsePooling) -> str:
    weights = g.add("Relu", [logits])
    for _ in range(pooling.logarithms):
        weights = g.add("Log", [g.add("Add", [weights, g.scalar("one", 1.0)])])
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedVectors(ExpectedNumbers):
    """PyTorch's weights (N, V) of real and of random texts."""

    @classmethod
    def from_samples(cls, model: TiedEncoder, pooling: SparsePooling, samples: Samples) -> Self:
        """Compute the weights of real texts and of random tokens from a fixed seed.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        encoded = samples.encode()[:REAL_TEXTS]
        if not encoded:
            raise samples.all_too_long()
        ids = [one.input_ids for one in encoded]
        ids += [one for one, _ in samples.random(np.random.default_rng(1))]
        weights = [_pooled(model, pooling, one) for one in ids]
        requests = [ModelPass.for_head(one, None, "mean") for one in ids]
        return cls(requests, len(encoded), np.stack(weights))

    @staticmethod
    def found(runtime: Runtime, requests: Sequence[ModelPass]) -> Iterator[NDArray[np.float32]]:
        # one at a time, because each has V weights
        return (runtime.run(Batch.pack([one])).pooled[0] for one in requests)

    def compare(self, runtime: Runtime) -> dict[str, Any]:
        """Return the number of texts, and the largest difference over all dimensions."""
        difference = self.difference(runtime, "weights")
        return {"texts": len(self.requests), "max_weight_difference": difference}

    def measure(self, runtime: Runtime) -> dict[str, Any]:
        """Compare the weights of real texts in the int8 graph with PyTorch's in fp32.

        Returns:
            The number of texts, the mean share of fp32's hundred strongest dimensions among those
            of int8, the mean absolute difference of the dot products of two texts relative to
            fp32, and the mean and the 99th percentile of the absolute differences over the hundred
            strongest dimensions.

        Raises:
            VerificationError: the strongest dimensions or the dot products differ too much.
        """
        exact_NV = self.exact[: self.real]
        found_NV = np.stack([*self.found(runtime, self.requests[: self.real])])
        best = [strongest(weights) for weights in exact_NV]
        rows = list(zip(exact_NV, found_NV, best, strict=True))
        differences = np.concatenate([np.abs(found[b] - exact[b]) for exact, found, b in rows])
        overlap = float(
            np.mean([len(np.intersect1d(b, strongest(x))) / max(len(b), 1) for _, x, b in rows])
        )
        dots, found_dots = exact_NV @ exact_NV.T, found_NV @ found_NV.T
        pairs = dots > 0
        dot_difference = float((np.abs(found_dots - dots)[pairs] / dots[pairs]).mean())
        require_int8(
            overlap >= MIN_OVERLAP,
            f"the int8 graph must share {100 * MIN_OVERLAP:.0f} % of fp32's {STRONGEST} "
            f"strongest dimensions (got {100 * overlap:.1f} %)",
        )
        require_int8(
            dot_difference <= MAX_DOT_DIFFERENCE,
            f"the dot products of int8 must differ from fp32's by at most "
            f"{100 * MAX_DOT_DIFFERENCE:.0f} % on average (got {100 * dot_difference:.1f} %)",
        )
        return {
            "texts": self.real,
            "strongest_overlap": overlap,
            "mean_dot_difference": dot_difference,
            "mean_weight_difference": float(differences.mean()),
            "p99_weight_difference": float(np.quantile(differences, 0.99)),
        }


@torch.inference_mode()
def _pooled(
    model: TiedEncoder, pooling: SparsePooling, input_ids: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Compute the weights (V,) of a text in PyTorch."""
    every_position = np.arange(len(input_ids))
    request = ModelPass(input_ids, every_position, 1, np.empty((len(input_ids), 0), np.int64))
    weights: NDArray[np.float32] = pooling(encoder_logits(model, [request])).numpy()
    return weights


def strongest(weights_V: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the ids of the strongest dimensions above 0."""
    best = np.argsort(-weights_V, kind="stable")[:STRONGEST]
    return best[weights_V[best] > 0]
