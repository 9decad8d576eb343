"""Verification of the fills of an fp32 graph against the PyTorch encoder.

Shapes: M masked positions of all texts, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.heads.agreement import TOP_K, Fp32Predictions, measure_agreement
from fillmask_export.heads.head import (
    MAX_GRAPH_DIFFERENCE,
    VerificationError,
    encoder_logits,
    random_inputs,
)
from fillmask_export.progress import Report
from fillmask_export.text_format import encode_inputs, sample_inputs
from fillmask_model.encoder.encoder import TiedEncoder

TIE = 1e-4  # nats, maximum difference between tokens that may swap ranks
MASKS_PER_TEXT = 3  # more than one mask reveals a wrong order of the outputs
REAL_TEXTS = 24  # maximum number


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedFills:
    """PyTorch's log-probabilities of masks in the verification texts.

    Attributes:
        requests: passes for the fp32 graph.
        log_probs: (M, V) expected log-probabilities.
        predictions: expected predictions of the int8 graph. None for an fp32 bundle.
        report: function that receives the progress of the comparison in int8.
    """

    requests: Sequence[ModelPass]
    log_probs: NDArray[np.float32]
    predictions: Fp32Predictions | None
    report: Report

    @classmethod
    def from_texts(
        cls,
        model: TiedEncoder,
        texts: Sequence[str],
        tokenizer: Tokenizer,
        max_tokens: int,
        token_types: int,
        predictions: Fp32Predictions | None,
        report: Report,
    ) -> Self:
        """Compute the log-probabilities of real and of random tokens with up to three masks.

        Args:
            texts: plain sentences without masks. The function uses the first REAL_TEXTS texts and
                their pairs, except for empty inputs and inputs of more than `max_tokens` tokens.
            token_types: number of token types of random tokens.
        """
        generator = np.random.default_rng(0)
        samples = sample_inputs(texts[:REAL_TEXTS], tokenizer)
        inputs = [
            (one.input_ids, one.token_types)
            for one in encode_inputs(samples, tokenizer, max_tokens)
            if len(one.input_ids) > 2
        ]
        inputs += random_inputs(model.config.vocab_size, max_tokens, token_types, generator)
        requests = []
        for input_ids, types in inputs:
            count = min(int(generator.integers(1, MASKS_PER_TEXT + 1)), len(input_ids))
            positions = np.sort(generator.choice(len(input_ids), count, replace=False))
            masked = input_ids.copy()
            masked[positions] = tokenizer.mask_token_id
            one = ModelPass(masked, positions.astype(np.int64), TOP_K, no_targets(count), types)
            requests.append(one)
        return cls(requests, encoder_log_probs(model, requests), predictions, report)

    def compare(self, runtime: Runtime) -> dict[str, Any]:
        """Run all passes as one batch and compare the results with the results of the encoder.

        Returns:
            The numbers of texts with pairs and of masks, the largest absolute difference in nats
            over the graph's five top tokens, and whether both have the same top tokens at every
            mask, except for ties within TIE.

        Raises:
            VerificationError: a log-probability differs by more than 1e-3 nats, or the top tokens
                of a mask differ, except for ties.
        """
        outputs = runtime.run(Batch.pack(self.requests))
        at_top = np.take_along_axis(self.log_probs, outputs.top_ids, axis=1)
        best = -np.sort(-self.log_probs, axis=1)[:, : outputs.top_ids.shape[1]]
        difference = float(np.abs(at_top - outputs.top_log_probs).max())
        same = bool((np.abs(at_top - best) <= TIE).all())
        if not (difference <= MAX_GRAPH_DIFFERENCE and same):
            raise VerificationError(
                f"the graph must have the PyTorch encoder's top {TOP_K} tokens with "
                f"log-probabilities that differ by at most {MAX_GRAPH_DIFFERENCE} nats "
                f"(got {'the same' if same else 'other'} tokens and a difference of "
                f"{difference:.2g}); report a bug of the export"
            )
        return {
            "texts": len(self.requests),
            "masks": len(self.log_probs),
            "max_log_prob_difference": difference,
            "same_top_5": same,
        }

    def measure(self, runtime: Runtime) -> dict[str, Any]:
        assert self.predictions is not None  # noqa: S101 - the bundle is in int8
        return measure_agreement(runtime, self.predictions, self.report)


@torch.inference_mode()
def encoder_log_probs(model: TiedEncoder, requests: Sequence[ModelPass]) -> NDArray[np.float32]:
    """Compute the log-probabilities (M, V) of the PyTorch encoder, without padding."""
    parts = [encoder_logits(model, [request]).log_softmax(-1).numpy() for request in requests]
    return np.concatenate(parts)
