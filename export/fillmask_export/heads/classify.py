"""Verification of the labels of a graph against the classification head in PyTorch.

Shapes: N texts, T tokens, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.heads.head import (
    INT8_ADVICE,
    VerificationError,
    all_too_long,
    graph_difference,
    random_inputs,
)
from fillmask_export.text_format import encode_inputs, sample_inputs
from fillmask_model.encoder.encoder import TiedEncoder

MIN_AGREEMENT = 0.9  # minimum share of texts with the same best label in int8 and fp32
# Difference of logits within which labels may swap ranks. The verification texts are not the texts
# of the task, so that a classifier may be undecided about some of them.
TIE = 0.1
# Maximum 99th percentile of the differences between int8 and fp32, absolute and relative to the
# root mean square of the logits. The larger limit applies, because rounding errors grow with the
# logits. The absolute limit is that of fills. MiniLM with seven labels has 0.04 for logits of 1.2.
MAX_P99, MAX_RELATIVE_P99 = 0.5, 0.2
REQUESTS_AT_ONCE = 16  # limits the memory of long random texts


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedLabels:
    """PyTorch's logits of the labels of real and of random texts.

    Attributes:
        requests: passes of real texts, followed by passes of random tokens.
        real: number of passes of real texts.
        logits: (N, L) expected logits.
    """

    requests: Sequence[ModelPass]
    real: int
    logits: NDArray[np.float32]

    @classmethod
    def from_texts(
        cls,
        model: TiedEncoder,
        texts: Sequence[str],
        tokenizer: Tokenizer,
        max_tokens: int,
        token_types: int,
    ) -> Self:
        """Compute the logits of real texts, of their pairs and of random tokens from a fixed seed.

        Args:
            model: fp32 encoder with a classification head.
            texts: plain sentences. The function skips texts and pairs of more than `max_tokens`
                tokens.
            token_types: number of token types of random tokens.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        assert model.classifier is not None  # noqa: S101 - callers have checked the tasks
        pooling = model.classifier.config.pooling
        inputs = encode_inputs(sample_inputs(texts, tokenizer), tokenizer, max_tokens)
        if not inputs:
            raise all_too_long(max_tokens)
        requests = [ModelPass.for_labels(one.input_ids, one.token_types, pooling) for one in inputs]
        generator = np.random.default_rng(1)
        requests += [
            ModelPass.for_labels(ids, types, pooling)
            for ids, types in random_inputs(
                model.config.vocab_size, max_tokens, token_types, generator
            )
        ]
        return cls(requests, len(inputs), encoder_label_logits(model, requests))

    def compare(self, runtime: Runtime) -> dict[str, Any]:
        """Return the number of texts with pairs, and the largest difference over all labels."""
        found = _graph_logits(runtime, self.requests)
        difference = graph_difference(found, self.logits, "labels' logits")
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
        exact = self.logits[: self.real]
        found = _graph_logits(runtime, self.requests[: self.real])
        difference = np.abs(found - exact)
        best = np.take_along_axis(exact, found.argmax(1, keepdims=True), 1)[:, 0]
        distance = exact.max(1) - best
        agreement = float((distance <= TIE).mean())
        if not agreement >= MIN_AGREEMENT:
            raise VerificationError(
                f"the int8 graph must have fp32's best label, except for ties within {TIE} in the "
                f"logits, for {100 * MIN_AGREEMENT:.0f} % of texts or more "
                f"(got {100 * agreement:.1f} %). {INT8_ADVICE}"
            )
        p99 = float(np.quantile(difference, 0.99))
        bound = max(MAX_P99, MAX_RELATIVE_P99 * float(np.sqrt(np.square(exact).mean())))
        if not p99 <= bound:
            raise VerificationError(
                f"the labels' logits of int8 must differ from fp32's by at most {bound:.2g} at the "
                f"99th percentile (got {p99:.2g}). {INT8_ADVICE}"
            )
        return {
            "texts": self.real,
            "best_label_agreement": float((distance == 0).mean()),
            "mean_logit_difference": float(difference.mean()),
            "p99_logit_difference": p99,
        }


@torch.inference_mode()
def encoder_label_logits(model: TiedEncoder, requests: Sequence[ModelPass]) -> NDArray[np.float32]:
    """Compute the logits (N, L) of the PyTorch encoder, without padding."""
    parts = []
    for request in requests:
        types = request.token_types
        types_1T = None if types is None else torch.from_numpy(types)[None]
        ids_1T = torch.from_numpy(request.input_ids)[None]
        parts.append(model.classify(ids_1T, None, types_1T).numpy())
    return np.concatenate(parts)


def _graph_logits(runtime: Runtime, requests: Sequence[ModelPass]) -> NDArray[np.float32]:
    parts = [
        runtime.run(Batch.pack(requests[start : start + REQUESTS_AT_ONCE])).label_logits
        for start in range(0, len(requests), REQUESTS_AT_ONCE)
    ]
    return np.concatenate(parts)
