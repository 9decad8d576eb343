"""Agreement of an int8 graph's fills with PyTorch in fp32 on the verification texts.

Shapes: M masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask_export.heads.errors import require_int8
from fillmask_export.heads.head import encoder_logits
from fillmask_export.heads.samples import Samples
from fillmask_export.progress import stage
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.equal_lengths import batches_of_equal_length
from fillmask_model.memory import release_memory

TOP_K = 5
MIN_AGREEMENT = 0.9  # minimum share of masks with the same top token in int8 and fp32
# nats, maximum 99th percentile of the log-probability differences over fp32's five top tokens
MAX_P99 = 0.5
MAX_MASKS = 1024  # limits the time of the comparison
MASK_EVERY = 7  # one of seven ordinary tokens is a mask, as in BERT's training
REQUESTS_AT_ONCE = 16  # limits the memory for the logits


@dataclass(frozen=True, slots=True, eq=False)
class Fp32Predictions:
    """Predictions of PyTorch in fp32 at masks in real texts.

    Attributes:
        requests: passes, with the five top tokens of fp32 as targets of each mask.
        log_probs: (M, 5) log-probabilities of the targets.
    """

    requests: tuple[ModelPass, ...]
    log_probs: NDArray[np.float32]

    @classmethod
    def from_samples(cls, model: TiedEncoder, samples: Samples) -> Self:
        """Predict about MAX_MASKS ordinary tokens, with masks in place of them.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        passes = _masked_texts(samples)
        requests: list[ModelPass] = []
        parts = []
        if not passes:
            raise samples.all_too_long()
        batches = batches_of_equal_length(
            passes, lambda one: one.tokens, lambda _: REQUESTS_AT_ONCE
        )
        with stage("prediction with PyTorch", len(passes)) as bar:
            for some in batches:
                release_memory()
                best_MK, log_probs_MK = _top(model, some)
                parts.append(log_probs_MK)
                ends = np.cumsum([len(one.mask_positions) for one in some])
                requests += [
                    replace(request, target_ids=best_mK)
                    for request, best_mK in zip(some, np.split(best_MK, ends[:-1]), strict=True)
                ]
                bar.update(len(some))
        return cls(tuple(requests), np.concatenate(parts))

    def measure(self, runtime: Runtime) -> dict[str, Any]:
        """Compare the predictions of the int8 graph with PyTorch's predictions in fp32.

        Returns:
            The number of masks, the share of masks with the same top token, and the mean and the
            99th percentile of the absolute differences in nats over the five top tokens of fp32.

        Raises:
            VerificationError: the agreement is below MIN_AGREEMENT, or the 99th percentile of the
                differences is above MAX_P99.
        """
        same, found = [], []
        with stage("comparison", len(self.requests)) as bar:
            for start in range(0, len(self.requests), REQUESTS_AT_ONCE):
                some = self.requests[start : start + REQUESTS_AT_ONCE]
                outputs = runtime.run(Batch.pack(some))
                best = np.concatenate([request.target_ids[:, 0] for request in some])
                same.append(outputs.top_ids[:, 0] == best)
                found.append(outputs.target_log_probs)
                bar.update(len(some))
        difference = np.abs(np.concatenate(found) - self.log_probs)
        agreement = float(np.concatenate(same).mean())
        p99 = float(np.quantile(difference, 0.99))
        require_int8(
            agreement >= MIN_AGREEMENT,
            f"the int8 graph must have fp32's top token at {100 * MIN_AGREEMENT:.0f} % of masks or "
            f"more (got {100 * agreement:.1f} %)",
        )
        require_int8(
            p99 <= MAX_P99,
            f"the log-probabilities of int8 must differ from fp32's by at most {MAX_P99} nats at "
            f"the 99th percentile (got {p99:.2g})",
        )
        return {
            "masks": len(self.log_probs),
            "top_1_agreement": agreement,
            "mean_log_prob_difference": float(difference.mean()),
            "p99_log_prob_difference": p99,
        }


@torch.inference_mode()
def _top(
    model: TiedEncoder, requests: Sequence[ModelPass]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the top ids and log-probabilities (M, 5) of passes of equal length."""
    logits_MV = encoder_logits(model, requests)
    # log_softmax needs a second tensor (M, V), which is too large for a large vocabulary
    best = logits_MV.topk(TOP_K)
    return best.indices.numpy(), (best.values - logits_MV.logsumexp(-1, keepdim=True)).numpy()


def _masked_texts(samples: Samples) -> list[ModelPass]:
    """Return passes that together mask each ordinary token once, up to MAX_MASKS.

    A pass masks every MASK_EVERY-th ordinary token of a text, so that the masks are about as far
    from each other as in training.
    """
    tokenizer = samples.tokenizer
    passes: list[ModelPass] = []
    for first in range(MASK_EVERY):
        for text in samples.texts:
            input_ids = tokenizer.encode(text).input_ids
            ordinary = np.flatnonzero(~np.isin(input_ids, list(tokenizer.special_token_ids)))
            positions = ordinary[first::MASK_EVERY].astype(np.int64)
            if not len(positions) or len(input_ids) > samples.max_tokens:
                continue
            masked = input_ids.copy()
            masked[positions] = tokenizer.mask_token_id
            passes.append(ModelPass(masked, positions, TOP_K, no_targets(len(positions))))
            if sum(len(one.mask_positions) for one in passes) >= MAX_MASKS:
                return passes
    return passes
