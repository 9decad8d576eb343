"""Verification of the sparse vectors of a graph against the encoder in PyTorch.

`fillmask.engine.runtime` runs the graph, as in production.

Shapes: N texts, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.text_format import encode_inputs
from fillmask_export.verification.fills import (
    INT8_ADVICE,
    VerificationError,
    encoder_logits,
    random_inputs,
)
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling

MAX_GRAPH_DIFFERENCE = 1e-3  # between weights, relative to the largest weight if that is above 1
REAL_TEXTS = 64  # maximum number of real texts, because each has V weights
STRONGEST = 100  # number of dimensions to compare between int8 and fp32
MIN_OVERLAP = 0.9  # minimum mean share of the strongest dimensions of fp32 that int8 shares
MAX_DOT_DIFFERENCE = 0.05  # maximum mean difference of dot products, relative to fp32


@dataclass(frozen=True, slots=True)
class VectorGraphFigures:
    """Comparison of the sparse vectors of the fp32 graph with PyTorch.

    Attributes:
        texts: number of compared texts.
        max_weight_difference: largest absolute difference over all dimensions.
    """

    texts: int
    max_weight_difference: float


@dataclass(frozen=True, slots=True)
class VectorInt8Figures:
    """Comparison of the sparse vectors of the int8 graph with PyTorch in fp32 on real texts.

    Attributes:
        texts: number of compared texts.
        strongest_overlap: mean share of fp32's hundred strongest dimensions among those of int8.
        mean_dot_difference: mean absolute difference of the dot products of two texts, relative to
            fp32.
        mean_weight_difference: mean absolute difference over the hundred strongest dimensions.
        p99_weight_difference: 99th percentile of the same absolute differences.
    """

    texts: int
    strongest_overlap: float
    mean_dot_difference: float
    mean_weight_difference: float
    p99_weight_difference: float


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
    ) -> ExpectedVectors:
        """Compute the weights of real texts and of random tokens from a fixed seed.

        Args:
            texts: plain sentences. The function skips texts of more than `max_tokens` tokens.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        inputs = encode_inputs(texts, tokenizer, max_tokens)[:REAL_TEXTS]
        if not inputs:
            raise VerificationError(
                f"all verification texts have more than {max_tokens} tokens; "
                "give shorter texts with --texts"
            )
        size = model.config.vocab_size
        random = random_inputs(size, max_tokens, 1, np.random.default_rng(1))
        ids = [*(one.input_ids for one in inputs), *(one for one, _ in random)]
        weights = [_pooled(model, pooling, one) for one in ids]
        requests = [ModelPass.for_vector(one, None, size) for one in ids]
        return cls(requests, len(inputs), np.stack(weights))


@torch.inference_mode()
def _pooled(
    model: TiedEncoder, pooling: SparsePooling, input_ids: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Compute the weights (V,) of a text in PyTorch."""
    every_position = np.arange(len(input_ids))
    request = ModelPass(input_ids, every_position, 1, np.empty((len(input_ids), 0), np.int64))
    weights: NDArray[np.float32] = pooling(encoder_logits(model, [request])).numpy()
    return weights


def compare_vector_graph(runtime: Runtime, expected: ExpectedVectors) -> VectorGraphFigures:
    """Compare the weights of the fp32 graph with those of the encoder.

    Raises:
        VerificationError: a weight differs by more than 1e-3 times the largest weight. If no weight
            is above 1, the limit is 1e-3.
    """
    # text by text, because the weights of all texts take too much memory for large vocabularies
    differences = [
        float(np.abs(_graph_weights(runtime, request) - weights_V).max())
        for request, weights_V in zip(expected.requests, expected.weights, strict=True)
    ]
    bound = MAX_GRAPH_DIFFERENCE * max(1.0, float(expected.weights.max()))
    if not max(differences) <= bound:
        raise VerificationError(
            "the weights of the graph must differ from the PyTorch encoder's by at most "
            f"{bound:.2g} (got {max(differences):.2g}); report a bug of the export"
        )
    return VectorGraphFigures(len(expected.requests), max(differences))


def measure_vector_agreement(runtime: Runtime, expected: ExpectedVectors) -> VectorInt8Figures:
    """Compare the weights of real texts in the int8 graph with PyTorch's in fp32.

    Raises:
        VerificationError: the strongest dimensions or the dot products differ too much.
    """
    exact_NV = expected.weights[: expected.real]
    found_NV = np.stack([_graph_weights(runtime, r) for r in expected.requests[: expected.real]])
    best = [strongest(weights) for weights in exact_NV]
    differences = np.concatenate(
        [
            np.abs(found[b] - exact[b])
            for found, exact, b in zip(found_NV, exact_NV, best, strict=True)
        ]
    )
    overlaps = [
        len(np.intersect1d(b, strongest(found))) / max(len(b), 1)
        for b, found in zip(best, found_NV, strict=True)
    ]
    dots, found_dots = exact_NV @ exact_NV.T, found_NV @ found_NV.T
    pairs = dots > 0
    figures = VectorInt8Figures(
        texts=expected.real,
        strongest_overlap=float(np.mean(overlaps)),
        mean_dot_difference=float((np.abs(found_dots - dots)[pairs] / dots[pairs]).mean()),
        mean_weight_difference=float(differences.mean()),
        p99_weight_difference=float(np.quantile(differences, 0.99)),
    )
    if not figures.strongest_overlap >= MIN_OVERLAP:
        raise VerificationError(
            f"the int8 graph must share {100 * MIN_OVERLAP:.0f} % of fp32's {STRONGEST} strongest "
            f"dimensions (got {100 * figures.strongest_overlap:.1f} %). {INT8_ADVICE}"
        )
    if not figures.mean_dot_difference <= MAX_DOT_DIFFERENCE:
        raise VerificationError(
            f"the dot products of int8 must differ from fp32's by at most "
            f"{100 * MAX_DOT_DIFFERENCE:.0f} % on average (got "
            f"{100 * figures.mean_dot_difference:.1f} %). {INT8_ADVICE}"
        )
    return figures


def _graph_weights(runtime: Runtime, request: ModelPass) -> NDArray[np.float32]:
    weights_V: NDArray[np.float32] = runtime.run(Batch.pack([request])).sparse_weights[0]
    return weights_V


def strongest(weights_V: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the ids of the strongest dimensions above 0."""
    best = np.argsort(-weights_V, kind="stable")[:STRONGEST]
    return best[weights_V[best] > 0]
