"""Fills of masks: the ranking of the vocabulary, compared with PyTorch.

Shapes: S slots that a head reads, M masked positions of all texts, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.tasks.fill_mask.golden import fill_tolerance
from fillmask.tokenization.encoded_text import EncodedText
from fillmask_export.graph.nodes import float_tensor, integer_tensor
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.ranking import rank
from fillmask_export.graph.served import Ends
from fillmask_export.heads.agreement import TOP_K, Fp32Predictions
from fillmask_export.heads.errors import VerificationError
from fillmask_export.heads.head import (
    MAX_GRAPH_DIFFERENCE,
    Head,
    encoder_logits,
    golden_tolerance,
)
from fillmask_export.heads.samples import Samples, text_fields
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.encoder import TiedEncoder

TIE = 1e-4  # nats, maximum difference between tokens that may swap ranks
MASKS_PER_TEXT = 3  # more than one mask reveals a wrong order of the outputs
REAL_TEXTS = 24  # maximum number


@dataclass(frozen=True, slots=True)
class FillMask(Head):
    """Head with the outputs `top_ids`, `top_log_probs` and `target_log_probs`."""

    slots = "mask_slots"
    field, records = "", "prompts"
    tolerance = staticmethod(fill_tolerance)

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:  # noqa: ARG003 - other heads need it
        return cls()

    def add(self, g: GraphBuilder, x_SD: str, rows: str, own: Callable[[str], str]) -> Ends:
        # of all slots, because int8 layers cannot compute zero rows in a batch without masks
        rank(g, own(g.head_transform(x_SD, rows)), self.slots)
        inputs = [
            integer_tensor(self.slots, "M"),
            integer_tensor("top_k", 1),
            integer_tensor("target_ids", "M", "K"),
        ]
        outputs = [
            integer_tensor("top_ids", "M", "k"),
            float_tensor("top_log_probs", "M", "k"),
            float_tensor("target_log_probs", "M", "K"),
        ]
        return Ends(inputs, outputs)

    def expect(self, model: TiedEncoder, samples: Samples) -> ExpectedFills:
        """Compute the log-probabilities of masks and, for int8, predict masked tokens."""
        predictions = Fp32Predictions.from_samples(model, samples) if samples.int8 else None
        return ExpectedFills.from_samples(model, samples, predictions)

    @classmethod
    def golden(
        cls, samples: Samples, runtime: Runtime, int8: dict[str, Any] | None
    ) -> dict[str, Any]:
        prompts = [
            {**text_fields(text), "fills": _fills(one, runtime, samples)}
            for text, one in samples.golden(masked=True)
        ]
        p99 = None if int8 is None else int8["p99_log_prob_difference"]
        return {"prompts": prompts, "log_prob_tolerance": golden_tolerance(p99)}

    @staticmethod
    def numbers(record: dict[str, Any]) -> dict[tuple[int, ...], float]:
        return {
            (mask, fill["token"]): fill["log_prob"]
            for mask, fills in enumerate(record["fills"])
            for fill in fills
        }


def _fills(encoded: EncodedText, runtime: Runtime, samples: Samples) -> list[list[dict[str, Any]]]:
    """Return the five best ordinary tokens of each mask."""
    special = samples.tokenizer.special_token_ids
    positions = encoded.mask_positions
    top_k = min(TOP_K + len(special), samples.vocab_size)
    targets = no_targets(len(positions))
    request = ModelPass(encoded.input_ids, positions, top_k, targets, encoded.token_types)
    outputs = runtime.run(Batch.pack([request]))
    return [
        [
            {"token": token, "log_prob": round(log_prob, 5)}
            for token, log_prob in zip(tokens, log_probs, strict=True)
            if token not in special
        ][:TOP_K]
        for tokens, log_probs in zip(
            outputs.top_ids.tolist(), outputs.top_log_probs.tolist(), strict=True
        )
    ]


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedFills:
    """PyTorch's log-probabilities of masks in the verification texts.

    Attributes:
        requests: passes for the fp32 graph.
        log_probs: (M, V) expected log-probabilities.
        predictions: expected predictions of the int8 graph. None for an fp32 bundle.
    """

    requests: Sequence[ModelPass]
    log_probs: NDArray[np.float32]
    predictions: Fp32Predictions | None

    @classmethod
    def from_samples(
        cls, model: TiedEncoder, samples: Samples, predictions: Fp32Predictions | None
    ) -> Self:
        """Compute the log-probabilities of real and of random tokens with up to three masks.

        The real tokens are those of the first REAL_TEXTS texts and of their pairs.
        """
        generator = np.random.default_rng(0)
        encoded = samples.encode(REAL_TEXTS)
        inputs = [(one.input_ids, one.token_types) for one in encoded if len(one.input_ids) > 2]
        inputs += samples.random(generator)
        requests = []
        for input_ids, types in inputs:
            count = min(int(generator.integers(1, MASKS_PER_TEXT + 1)), len(input_ids))
            positions = np.sort(generator.choice(len(input_ids), count, replace=False))
            masked = input_ids.copy()
            masked[positions] = samples.tokenizer.mask_token_id
            one = ModelPass(masked, positions.astype(np.int64), TOP_K, no_targets(count), types)
            requests.append(one)
        return cls(requests, encoder_log_probs(model, requests), predictions)

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
        return self.predictions.measure(runtime)


@torch.inference_mode()
def encoder_log_probs(model: TiedEncoder, requests: Sequence[ModelPass]) -> NDArray[np.float32]:
    """Compute the log-probabilities (M, V) of the PyTorch encoder, without padding."""
    parts = [encoder_logits(model, [request]).log_softmax(-1).numpy() for request in requests]
    return np.concatenate(parts)
