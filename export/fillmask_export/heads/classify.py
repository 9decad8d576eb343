"""Labels: the classification head, compared with PyTorch's.

The head is always in float32. Int8 saves almost nothing, because the head reads few rows and has
few weights.

Shapes: C tokens that the head reads, S slots that a head reads, N texts with labels, T tokens,
D d_model, L labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from fillmask.bundles.description import Pooling
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask.tasks.classify.golden import logit_tolerance
from fillmask_export.graph.nodes import float_tensor, integer_tensor
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.served import Ends
from fillmask_export.heads.errors import require_int8
from fillmask_export.heads.head import ExpectedNumbers, Head, golden_tolerance
from fillmask_export.heads.samples import Samples, text_fields
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder

NAME = "classifier"
MIN_AGREEMENT = 0.9  # minimum share of texts with the same best label in int8 and fp32
# Difference of logits within which labels may swap ranks. The verification texts are not the texts
# of the task, so that a classifier may be undecided about some of them.
TIE = 0.1
# Maximum 99th percentile of the differences between int8 and fp32, absolute and relative to the
# root mean square of the logits. The larger limit applies, because rounding errors grow with the
# logits. The absolute limit is that of fills. MiniLM with seven labels has 0.04 for logits of 1.2.
MAX_P99, MAX_RELATIVE_P99 = 0.5, 0.2
REQUESTS_AT_ONCE = 16  # limits the memory of long random texts


@dataclass(frozen=True, slots=True)
class Classify(Head):
    """Head with the output `label_logits`."""

    slots = "label_slots"
    field, records = "labels", "labels"
    tolerance = staticmethod(logit_tolerance)
    config: ClassifierConfig

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        assert checkpoint.model.classifier is not None  # noqa: S101 - the task needs it
        return cls(checkpoint.model.classifier.config)

    def description(self) -> dict[str, Any]:
        head = self.config
        fields = {"problem_type": head.problem_type, "pooling": head.pooling}
        return {"classification": {"labels": list(head.labels), **fields}}

    def add(self, g: GraphBuilder, x_SD: str, rows: str, own: Callable[[str], str]) -> Ends:  # noqa: ARG002 - other heads need rows
        x_CD, head = own(x_SD), self.config
        means = head.pooling == "mean"
        x_ND = _mean(g, x_CD) if means and not head.pool_last else x_CD
        x_ND = add_dense(g, x_ND, head)
        if means and head.pool_last:
            x_ND = _mean(g, x_ND)
        add_output(g, x_ND, head, "label_logits")
        inputs = [integer_tensor(self.slots, "C")]
        if means:
            inputs += [integer_tensor("label_texts", "C"), integer_tensor("label_lengths", "N")]
        return Ends(inputs, [float_tensor("label_logits", "N", len(head.labels))])

    def expect(self, model: TiedEncoder, samples: Samples) -> ExpectedLabels:
        """Compute the logits of real texts, of their pairs and of random tokens."""
        return ExpectedLabels.from_samples(model, samples)

    @classmethod
    def golden(
        cls, samples: Samples, runtime: Runtime, int8: dict[str, Any] | None
    ) -> dict[str, Any]:
        labels: list[dict[str, Any]] = []
        for text, one in samples.golden(masked=False):
            request = ModelPass.for_head(one.input_ids, one.token_types, samples.pooling)
            [logits] = ExpectedLabels.found(runtime, [request])
            rounded = [round(logit, 5) for logit in logits.tolist()]
            labels.append({**text_fields(text), "logits": rounded})
        largest = max(abs(logit) for one in labels for logit in one["logits"])
        p99 = None if int8 is None else int8["p99_logit_difference"]
        return {"logit_tolerance": golden_tolerance(p99, largest), "labels": labels}

    @staticmethod
    def numbers(record: dict[str, Any]) -> dict[tuple[int, ...], float]:
        return {(label,): logit for label, logit in enumerate(record["logits"])}


def add_dense(g: GraphBuilder, x_ND: str, head: ClassifierConfig) -> str:
    """Add the dense layer and its activation, if the head has them."""
    if head.activation is None:
        return x_ND
    bias = g.bias(f"{NAME}.dense.bias")
    dense = g.gemm(x_ND, g.weight(f"{NAME}.dense.weight"), f"{NAME}.dense.bias", bias)
    return g.activate(dense, head.activation)


def add_output(g: GraphBuilder, x_ND: str, head: ClassifierConfig, logits: str) -> None:
    """Add the norm, if the head has one, and the output layer."""
    if head.norm:
        x_ND = g.norm(x_ND, f"{NAME}.norm")
    bias = g.bias(f"{NAME}.output.bias")
    g.gemm(x_ND, g.weight(f"{NAME}.output.weight"), f"{NAME}.output.bias", bias, [logits])


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


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedLabels(ExpectedNumbers):
    """PyTorch's logits (N, L) of the labels of real and of random texts."""

    @classmethod
    def from_samples(cls, model: TiedEncoder, samples: Samples) -> Self:
        """Compute the logits of real texts, of their pairs and of random tokens from a fixed seed.

        Args:
            model: fp32 encoder with a classification head.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        requests, real = passes_of(samples, samples.pooling)
        return cls(requests, real, encoder_logits(model, requests))

    @staticmethod
    def found(runtime: Runtime, requests: Sequence[ModelPass]) -> NDArray[np.float32]:
        parts = [
            runtime.run(Batch.pack(requests[start : start + REQUESTS_AT_ONCE])).pooled
            for start in range(0, len(requests), REQUESTS_AT_ONCE)
        ]
        return np.concatenate(parts)

    def compare(self, runtime: Runtime) -> dict[str, Any]:
        """Return the number of texts with pairs, and the largest difference over all labels."""
        difference = self.difference(runtime, "labels' logits")
        return {"texts": len(self.requests), "max_logit_difference": difference}

    def measure(self, runtime: Runtime) -> dict[str, Any]:
        """Compare the labels of real texts in the int8 graph with PyTorch's labels in fp32.

        Returns:
            The number of texts with pairs, the share of texts with the same best label, and the
            mean and the 99th percentile of the absolute differences over all labels.

        Raises:
            VerificationError: the agreement is below MIN_AGREEMENT except for ties, or the 99th
                percentile of the differences is above both MAX_P99 and MAX_RELATIVE_P99 times the
                root mean square of the logits.
        """
        exact = self.exact[: self.real]
        found = self.found(runtime, self.requests[: self.real])
        difference = np.abs(found - exact)
        best = np.take_along_axis(exact, found.argmax(1, keepdims=True), 1)[:, 0]
        distance = exact.max(1) - best
        agreement = float((distance <= TIE).mean())
        require_int8(
            agreement >= MIN_AGREEMENT,
            f"the int8 graph must have fp32's best label, except for ties within {TIE} in the "
            f"logits, for {100 * MIN_AGREEMENT:.0f} % of texts or more "
            f"(got {100 * agreement:.1f} %)",
        )
        p99 = float(np.quantile(difference, 0.99))
        bound = max(MAX_P99, MAX_RELATIVE_P99 * float(np.sqrt(np.square(exact).mean())))
        require_int8(
            p99 <= bound,
            f"the labels' logits of int8 must differ from fp32's by at most {bound:.2g} at the "
            f"99th percentile (got {p99:.2g})",
        )
        return {
            "texts": self.real,
            "best_label_agreement": float((distance == 0).mean()),
            "mean_logit_difference": float(difference.mean()),
            "p99_logit_difference": p99,
        }


def passes_of(
    samples: Samples, pooling: Pooling | Literal["tokens"]
) -> tuple[list[ModelPass], int]:
    """Return the passes of real texts, their pairs and random tokens, and the number of real ones.

    Raises:
        VerificationError: no text has at most `max_tokens` tokens.
    """
    encoded = samples.encode()
    if not encoded:
        raise samples.all_too_long()
    inputs = [(one.input_ids, one.token_types) for one in encoded]
    inputs += samples.random(np.random.default_rng(1))
    return [ModelPass.for_head(ids, types, pooling) for ids, types in inputs], len(encoded)


@torch.inference_mode()
def encoder_logits(model: TiedEncoder, requests: Sequence[ModelPass]) -> NDArray[np.float32]:
    """Compute the logits of the PyTorch encoder, without padding: a row per text or per token."""
    parts = []
    for request in requests:
        types = request.token_types
        types_1T = None if types is None else torch.from_numpy(types)[None]
        ids_1T = torch.from_numpy(request.input_ids)[None]
        logits = model.classify(ids_1T, None, types_1T)
        parts.append(logits.flatten(0, -2).numpy())
    return np.concatenate(parts)
