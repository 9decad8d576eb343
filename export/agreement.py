"""Agreement of the int8 graph with PyTorch in fp32 on the verification texts.

`service.engine.runtime` runs the graph, as in production.

Shapes: M masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from export.verify import INT8_ADVICE, TOP_K, VerificationError, encoder_logits
from model.encoder.encoder import TiedEncoder
from model.memory import release_memory
from service.engine.batch_arrays import Batch
from service.engine.passes import ModelPass, no_targets
from service.engine.runtime import Runtime
from service.tokenization.tokenizer import Tokenizer

MIN_AGREEMENT = 0.9  # minimum share of masks with the same top token in int8 and fp32
# nats, maximum 99th percentile of the log-probability differences over fp32's five top tokens
MAX_P99 = 0.5
REQUESTS_AT_ONCE = 16  # limits the memory for the log-probabilities of a long text


@dataclass(frozen=True, slots=True)
class Int8Figures:
    """Comparison of int8 with PyTorch in fp32, with one mask per ordinary token of real texts.

    Attributes:
        masks: number of compared masks.
        top_1_agreement: share of masks with the same top token.
        mean_log_prob_difference: mean absolute difference in nats over the five top tokens of fp32.
        p99_log_prob_difference: 99th percentile of the same absolute differences, in nats.
    """

    masks: int
    top_1_agreement: float
    mean_log_prob_difference: float
    p99_log_prob_difference: float


@dataclass(frozen=True, slots=True, eq=False)
class Fp32Predictions:
    """Predictions of PyTorch in fp32, with one mask per ordinary token of real texts.

    Attributes:
        requests: one pass per mask, with the five top tokens of fp32 as targets.
        log_probs: (M, 5) log-probabilities of the targets.
    """

    requests: tuple[ModelPass, ...]
    log_probs: NDArray[np.float32]

    @classmethod
    def from_texts(
        cls, model: TiedEncoder, texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int
    ) -> Self:
        """Predict each ordinary token of each text, with a mask in place of the token.

        Args:
            model: fp32 encoder.
            texts: plain sentences without masks. The function skips texts of more than
                `max_tokens` tokens.
            max_tokens: maximum length of an input in tokens.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        requests: list[ModelPass] = []
        parts = []
        for text in texts:
            release_memory()
            masked = _mask_each_token(text, tokenizer, max_tokens)
            for start in range(0, len(masked), REQUESTS_AT_ONCE):
                some = masked[start : start + REQUESTS_AT_ONCE]
                best_MK, log_probs_MK = _top(model, some)
                parts.append(log_probs_MK)
                requests += [
                    replace(request, target_ids=best[None])
                    for request, best in zip(some, best_MK, strict=True)
                ]
        if not requests:
            raise VerificationError(
                f"all verification texts have more than {max_tokens} tokens; "
                "give shorter texts with --texts"
            )
        return cls(tuple(requests), np.concatenate(parts))


@torch.inference_mode()
def _top(
    model: TiedEncoder, requests: Sequence[ModelPass]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the top ids and log-probabilities (M, 5) of passes of equal length with one mask."""
    logits_MV = encoder_logits(model, requests)
    # log_softmax needs a second tensor (M, V), which is too large for a large vocabulary
    best = logits_MV.topk(TOP_K)
    return best.indices.numpy(), (best.values - logits_MV.logsumexp(-1, keepdim=True)).numpy()


def measure_agreement(runtime: Runtime, expected: Fp32Predictions) -> Int8Figures:
    """Compare the predictions of the int8 graph with PyTorch's predictions in fp32.

    Raises:
        VerificationError: the agreement is below MIN_AGREEMENT, or the 99th percentile of the
            differences is above MAX_P99.
    """
    same, found = [], []
    for start in range(0, len(expected.requests), REQUESTS_AT_ONCE):
        some = expected.requests[start : start + REQUESTS_AT_ONCE]
        outputs = runtime.run(Batch.pack(some))
        best = np.concatenate([request.target_ids[:, 0] for request in some])
        same.append(outputs.top_ids[:, 0] == best)
        found.append(outputs.target_log_probs)
    difference = np.abs(np.concatenate(found) - expected.log_probs)
    figures = Int8Figures(
        masks=len(expected.requests),
        top_1_agreement=float(np.concatenate(same).mean()),
        mean_log_prob_difference=float(difference.mean()),
        p99_log_prob_difference=float(np.quantile(difference, 0.99)),
    )
    if not figures.top_1_agreement >= MIN_AGREEMENT:
        raise VerificationError(
            f"the int8 graph must have fp32's top token at {100 * MIN_AGREEMENT:.0f} % of masks or "
            f"more (got {100 * figures.top_1_agreement:.1f} %). {INT8_ADVICE}"
        )
    if not figures.p99_log_prob_difference <= MAX_P99:
        raise VerificationError(
            f"the log-probabilities of int8 must differ from fp32's by at most {MAX_P99} nats at "
            f"the 99th percentile (got {figures.p99_log_prob_difference:.2g}). {INT8_ADVICE}"
        )
    return figures


def _mask_each_token(text: str, tokenizer: Tokenizer, max_tokens: int) -> list[ModelPass]:
    """Return one pass per ordinary token of a text, with a mask in place of the token."""
    input_ids = tokenizer.encode(text).input_ids
    if len(input_ids) > max_tokens:
        return []
    requests = []
    for position, token in enumerate(input_ids.tolist()):
        if token not in tokenizer.special_token_ids:
            masked = input_ids.copy()
            masked[position] = tokenizer.mask_token_id
            mask_position = np.array([position], np.int64)
            requests.append(ModelPass(masked, mask_position, TOP_K, no_targets(1)))
    return requests
