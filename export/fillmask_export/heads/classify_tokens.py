"""Labels of tokens: a classification head for each token, compared with PyTorch's.

The head is always in float32, as for labels of texts.

Shapes: S slots that a head reads, C tokens of all texts, T tokens of a text, D d_model, L labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask.tasks.classify_tokens.golden import label_tolerance
from fillmask.tasks.classify_tokens.spans import labelled_runs, log_softmax
from fillmask_export.graph.nodes import float_tensor, integer_tensor
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.served import Ends
from fillmask_export.heads.classify import (
    REQUESTS_AT_ONCE,
    add_dense,
    add_output,
    encoder_logits,
    passes_of,
)
from fillmask_export.heads.errors import require_int8
from fillmask_export.heads.head import ExpectedNumbers, Head, golden_tolerance
from fillmask_export.heads.samples import Samples, text_fields
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder

# minimum share of tokens with the same label in int8 and fp32
MIN_AGREEMENT = 0.98
# nats, maximum 99th percentile of the log-probability differences of fp32's labels
MAX_P99 = 0.5


@dataclass(frozen=True, slots=True)
class ClassifyTokens(Head):
    """Head with the output `token_logits`."""

    slots = "token_slots"
    field, records = "token_labels", "token_labels"
    tolerance = staticmethod(label_tolerance)
    config: ClassifierConfig

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        assert checkpoint.model.classifier is not None  # noqa: S101 - the task needs it
        return cls(checkpoint.model.classifier.config)

    def description(self) -> dict[str, Any]:
        return {"token_classification": {"labels": list(self.config.labels)}}

    def add(self, g: GraphBuilder, x_SD: str, rows: str, own: Callable[[str], str]) -> Ends:  # noqa: ARG002 - other heads need rows
        x_CD = add_dense(g, own(x_SD), self.config)
        add_output(g, x_CD, self.config, "token_logits")
        logits = float_tensor("token_logits", "C", len(self.config.labels))
        return Ends([integer_tensor(self.slots, "C")], [logits])

    def expect(self, model: TiedEncoder, samples: Samples) -> ExpectedTokens:
        """Compute the logits of each token of real texts, of their pairs and of random tokens."""
        return ExpectedTokens.from_samples(model, samples, self.config.labels)

    @classmethod
    def golden(
        cls, samples: Samples, runtime: Runtime, int8: dict[str, Any] | None
    ) -> dict[str, Any]:
        records: list[dict[str, Any]] = []
        for text, one in samples.golden(masked=False):
            request = ModelPass.for_head(one.input_ids, one.token_types, "tokens")
            logits_TL = ExpectedTokens.found(runtime, [request])
            best_T, log_probs_T = best_labels(logits_TL)
            fields = {"labels": best_T.tolist(), "log_probs": np.round(log_probs_T, 5).tolist()}
            records.append({**text_fields(text), **fields})
        p99 = None if int8 is None else int8["p99_log_prob_difference"]
        return {"label_tolerance": golden_tolerance(p99), "token_labels": records}

    @staticmethod
    def numbers(record: dict[str, Any]) -> dict[tuple[int, ...], float]:
        pairs = zip(record["labels"], record["log_probs"], strict=True)
        return {(token, label): log_prob for token, (label, log_prob) in enumerate(pairs)}


def best_labels(logits_TL: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the best label (T,) of each token and its log-probability (T,)."""
    log_probs_TL = log_softmax(logits_TL)
    best_T = log_probs_TL.argmax(1)
    return best_T, np.take_along_axis(log_probs_TL, best_T[:, None], 1)[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedTokens(ExpectedNumbers):
    """PyTorch's logits of the tokens of real and of random texts, a row (L,) per token.

    Attributes:
        labels: names of the labels.
    """

    labels: tuple[str, ...]

    @classmethod
    def from_samples(cls, model: TiedEncoder, samples: Samples, labels: tuple[str, ...]) -> Self:
        """Compute the logits of real texts, of their pairs and of random tokens from a fixed seed.

        Args:
            model: fp32 encoder with a head for each token.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        requests, real = passes_of(samples, "tokens")
        return cls(requests, real, encoder_logits(model, requests), labels)

    @staticmethod
    def found(runtime: Runtime, requests: Sequence[ModelPass]) -> NDArray[np.float32]:
        parts = [
            runtime.run(Batch.pack(requests[start : start + REQUESTS_AT_ONCE])).tokens
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
            The number of texts and of tokens, the share of tokens with the same label, the share of
            fp32's entities with the same tokens and label in int8, and the mean and the 99th
            percentile of the differences in nats of fp32's labels.

        Raises:
            VerificationError: the share of tokens is below MIN_AGREEMENT, or the 99th percentile is
                above MAX_P99.
        """
        requests = self.requests[: self.real]
        found_CL = self.found(runtime, requests)
        exact_CL = self.exact[: len(found_CL)]
        best_C, log_probs_C = best_labels(exact_CL)
        found_C = found_CL.argmax(1)
        own_C = np.take_along_axis(log_softmax(found_CL), best_C[:, None], 1)[:, 0]
        difference = np.abs(own_C - log_probs_C)
        ends = np.cumsum([one.tokens for one in requests])[:-1]
        exact_runs, runs = (
            [self._runs(labels_T) for labels_T in np.split(labels_C, ends)]
            for labels_C in (best_C, found_C)
        )
        entities = sum(map(len, exact_runs))
        kept = sum(len(a & b) for a, b in zip(exact_runs, runs, strict=True))
        agreement = float((found_C == best_C).mean())
        p99 = float(np.quantile(difference, 0.99))
        require_int8(
            agreement >= MIN_AGREEMENT,
            f"the int8 graph must have fp32's label at {100 * MIN_AGREEMENT:.0f} % of tokens or "
            f"more (got {100 * agreement:.1f} %)",
        )
        require_int8(
            p99 <= MAX_P99,
            f"the log-probabilities of int8 must differ from fp32's by at most {MAX_P99} nats at "
            f"the 99th percentile (got {p99:.2g})",
        )
        return {
            "texts": self.real,
            "tokens": len(difference),
            "label_agreement": agreement,
            "entities": entities,
            "entity_agreement": kept / entities if entities else None,
            "mean_log_prob_difference": float(difference.mean()),
            "p99_log_prob_difference": p99,
        }

    def _runs(self, labels_T: NDArray[np.int64]) -> set[tuple[str, int, int]]:
        names = [self.labels[label] for label in labels_T[1:-1].tolist()]  # not special tokens
        return {run for run in labelled_runs(names) if run[0] != "O"}
