"""Verification of the labels of a graph against the classification head in PyTorch.

`fillmask.engine.runtime` runs the graph, as in production.

Shapes: N texts, T tokens, L labels.
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
from fillmask_export.text_format import encode_inputs, sample_inputs
from fillmask_export.verification.fills import INT8_ADVICE, VerificationError, random_inputs
from fillmask_model.encoder.encoder import TiedEncoder

# between logits of the fp32 graph and PyTorch, relative to the largest logit if that is above 1
MAX_GRAPH_DIFFERENCE = 1e-3
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
class LabelGraphFigures:
    """Comparison of the labels of the fp32 graph with PyTorch.

    Attributes:
        texts: number of compared texts and pairs.
        max_logit_difference: largest absolute difference over all labels.
    """

    texts: int
    max_logit_difference: float


@dataclass(frozen=True, slots=True)
class LabelInt8Figures:
    """Comparison of the labels of the int8 graph with PyTorch in fp32 on real texts.

    Attributes:
        texts: number of compared texts and pairs.
        best_label_agreement: share of texts with the same best label.
        mean_logit_difference: mean absolute difference over all labels.
        p99_logit_difference: 99th percentile of the same absolute differences.
    """

    texts: int
    best_label_agreement: float
    mean_logit_difference: float
    p99_logit_difference: float


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
    ) -> ExpectedLabels:
        """Compute the logits of real texts, of their pairs and of random tokens from a fixed seed.

        Args:
            model: fp32 encoder with a classification head.
            texts: plain sentences. The function skips texts and pairs of more than `max_tokens`
                tokens.
            max_tokens: maximum length of an input in tokens.
            token_types: number of token types of random tokens.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        assert model.classifier is not None  # noqa: S101 - callers have checked the tasks
        pooling = model.classifier.config.pooling
        inputs = encode_inputs(sample_inputs(texts, tokenizer), tokenizer, max_tokens)
        if not inputs:
            raise VerificationError(
                f"all verification texts have more than {max_tokens} tokens; "
                "give shorter texts with --texts"
            )
        requests = [ModelPass.for_labels(one.input_ids, one.token_types, pooling) for one in inputs]
        generator = np.random.default_rng(1)
        requests += [
            ModelPass.for_labels(ids, types, pooling)
            for ids, types in random_inputs(
                model.config.vocab_size, max_tokens, token_types, generator
            )
        ]
        return cls(requests, len(inputs), encoder_label_logits(model, requests))


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


def compare_label_graph(runtime: Runtime, expected: ExpectedLabels) -> LabelGraphFigures:
    """Compare the logits of the fp32 graph with the logits of the encoder.

    Raises:
        VerificationError: a logit differs by more than 1e-3 times the largest absolute logit. If no
            absolute logit is above 1, the limit is 1e-3.
    """
    found = _graph_logits(runtime, expected.requests)
    difference = float(np.abs(found - expected.logits).max())
    bound = MAX_GRAPH_DIFFERENCE * max(1.0, float(np.abs(expected.logits).max()))
    if not difference <= bound:
        raise VerificationError(
            "the labels' logits of the graph must differ from the PyTorch encoder's by at most "
            f"{bound:.2g} (got {difference:.2g}); report a bug of the export"
        )
    return LabelGraphFigures(len(expected.requests), difference)


def measure_label_agreement(runtime: Runtime, expected: ExpectedLabels) -> LabelInt8Figures:
    """Compare the labels of real texts in the int8 graph with PyTorch's labels in fp32.

    Raises:
        VerificationError: the agreement is below MIN_AGREEMENT except for ties, or the 99th
            percentile of the differences is above both MAX_P99 and MAX_RELATIVE_P99 times the root
            mean square of the logits.
    """
    exact = expected.logits[: expected.real]
    found = _graph_logits(runtime, expected.requests[: expected.real])
    difference = np.abs(found - exact)
    best = np.take_along_axis(exact, found.argmax(1, keepdims=True), 1)[:, 0]
    distance = exact.max(1) - best
    figures = LabelInt8Figures(
        texts=expected.real,
        best_label_agreement=float((distance == 0).mean()),
        mean_logit_difference=float(difference.mean()),
        p99_logit_difference=float(np.quantile(difference, 0.99)),
    )
    agreement = float((distance <= TIE).mean())
    if not agreement >= MIN_AGREEMENT:
        raise VerificationError(
            f"the int8 graph must have fp32's best label, except for ties within {TIE} in the "
            f"logits, for {100 * MIN_AGREEMENT:.0f} % of texts or more "
            f"(got {100 * agreement:.1f} %). {INT8_ADVICE}"
        )
    bound = max(MAX_P99, MAX_RELATIVE_P99 * float(np.sqrt(np.square(exact).mean())))
    if not figures.p99_logit_difference <= bound:
        raise VerificationError(
            f"the labels' logits of int8 must differ from fp32's by at most {bound:.2g} at the "
            f"99th percentile (got {figures.p99_logit_difference:.2g}). {INT8_ADVICE}"
        )
    return figures


def _graph_logits(runtime: Runtime, requests: Sequence[ModelPass]) -> NDArray[np.float32]:
    parts = [
        runtime.run(Batch.pack(requests[start : start + REQUESTS_AT_ONCE])).label_logits
        for start in range(0, len(requests), REQUESTS_AT_ONCE)
    ]
    return np.concatenate(parts)
