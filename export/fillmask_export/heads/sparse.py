"""Verification of the sparse vectors of a graph against the encoder in PyTorch.

Shapes: N texts, T tokens, V vocabulary.
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
    encoder_logits,
    graph_difference,
    random_inputs,
)
from fillmask_export.text_format import encode_inputs
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling

REAL_TEXTS = 64  # maximum number of real texts, because each has V weights
STRONGEST = 100  # number of dimensions to compare between int8 and fp32
MIN_OVERLAP = 0.9  # minimum mean share of the strongest dimensions of fp32 that int8 shares
MAX_DOT_DIFFERENCE = 0.05  # maximum mean difference of dot products, relative to fp32


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedVectors:
    """PyTorch's weights of real and of random texts.

    Attributes:
        requests: passes of real texts, followed by passes of random tokens.
        real: number of passes of real texts.
        weights: (N, V) expected weights.
    """

    requests: Sequence[ModelPass]
    real: int
    weights: NDArray[np.float32]

    @classmethod
    def from_texts(
        cls,
        model: TiedEncoder,
        pooling: SparsePooling,
        texts: Sequence[str],
        tokenizer: Tokenizer,
        max_tokens: int,
    ) -> Self:
        """Compute the weights of real texts and of random tokens from a fixed seed.

        Args:
            texts: plain sentences. The function skips texts of more than `max_tokens` tokens.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        inputs = encode_inputs(texts, tokenizer, max_tokens)[:REAL_TEXTS]
        if not inputs:
            raise all_too_long(max_tokens)
        size = model.config.vocab_size
        random = random_inputs(size, max_tokens, 1, np.random.default_rng(1))
        ids = [*(one.input_ids for one in inputs), *(one for one, _ in random)]
        weights = [_pooled(model, pooling, one) for one in ids]
        requests = [ModelPass.for_vector(one, None, size) for one in ids]
        return cls(requests, len(inputs), np.stack(weights))

    def compare(self, runtime: Runtime) -> dict[str, Any]:
        """Return the number of texts, and the largest difference over all dimensions."""
        found = (_graph_weights(runtime, request) for request in self.requests)
        difference = graph_difference(found, self.weights, "weights")
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
        exact_NV = self.weights[: self.real]
        found_NV = np.stack([_graph_weights(runtime, r) for r in self.requests[: self.real]])
        best = [strongest(weights) for weights in exact_NV]
        rows = list(zip(exact_NV, found_NV, best, strict=True))
        differences = np.concatenate([np.abs(found[b] - exact[b]) for exact, found, b in rows])
        overlap = float(
            np.mean([len(np.intersect1d(b, strongest(x))) / max(len(b), 1) for _, x, b in rows])
        )
        dots, found_dots = exact_NV @ exact_NV.T, found_NV @ found_NV.T
        pairs = dots > 0
        dot_difference = float((np.abs(found_dots - dots)[pairs] / dots[pairs]).mean())
        if not overlap >= MIN_OVERLAP:
            raise VerificationError(
                f"the int8 graph must share {100 * MIN_OVERLAP:.0f} % of fp32's {STRONGEST} "
                f"strongest dimensions (got {100 * overlap:.1f} %). {INT8_ADVICE}"
            )
        if not dot_difference <= MAX_DOT_DIFFERENCE:
            raise VerificationError(
                f"the dot products of int8 must differ from fp32's by at most "
                f"{100 * MAX_DOT_DIFFERENCE:.0f} % on average (got {100 * dot_difference:.1f} %). "
                f"{INT8_ADVICE}"
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


def _graph_weights(runtime: Runtime, request: ModelPass) -> NDArray[np.float32]:
    weights_V: NDArray[np.float32] = runtime.run(Batch.pack([request])).sparse_weights[0]
    return weights_V


def strongest(weights_V: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the ids of the strongest dimensions above 0."""
    best = np.argsort(-weights_V, kind="stable")[:STRONGEST]
    return best[weights_V[best] > 0]
