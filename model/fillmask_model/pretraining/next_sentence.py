"""Next-sentence prediction, BERT's second objective (Devlin et al. 2019, section 3.1, task 2).

The loss of a step is the mean cross-entropy of the masked tokens plus the mean cross-entropy of the
labels. Both losses come from one pass of the encoder over the masked input.

Shapes: N pairs, T tokens, R positions that a head reads, D d_model, L labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fillmask_model.bootstrap import bootstrap_bounds
from fillmask_model.encoder.classifier import NEXT_SENTENCE_LABELS, ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.extension import extend_encoder
from fillmask_model.pretraining.cross_entropy import summed_cross_entropy
from fillmask_model.pretraining.evaluation import BATCH_ROWS
from fillmask_model.pretraining.masking import MaskedBatch
from fillmask_model.pretraining.pairs import PairBatch, Pairs


@dataclass(frozen=True, slots=True)
class PairMetrics:
    """Metrics of held-out pairs.

    Attributes:
        accuracy: share of pairs with the correct label.
        loss: mean cross-entropy of the labels in nats.
        accuracy_interval: bounds of the accuracy's 95 % confidence interval.
    """

    accuracy: float
    loss: float
    pairs: int
    accuracy_interval: tuple[float, float]

    def summary(self) -> str:
        low, high = self.accuracy_interval
        return f"next sentence {100 * self.accuracy:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def evaluate_pairs(
    model: TiedEncoder, pairs: Pairs, count: int | None = None, batch_rows: int = BATCH_ROWS
) -> PairMetrics:
    """Score an encoder's predictions for pairs without masks, as in the service.

    Args:
        model: encoder with a next-sentence head, on any device. The function restores its training
            mode.
        count: number of pairs to evaluate. None for all.
    """
    documents = pairs.numbers[:count, 3]
    was_training = model.training
    model.eval()
    losses, correct = [], []
    try:
        for start in range(0, len(documents), batch_rows):
            batch = pairs.batch(slice(start, min(start + batch_rows, len(documents))))
            with torch.inference_mode():
                logits_NL = model.classify(*_inputs(model, batch.input_ids, batch)).float().cpu()
            losses.append(F.cross_entropy(logits_NL, batch.labels, reduction="none"))
            correct.append(logits_NL.argmax(-1).eq(batch.labels))
    finally:
        model.train(was_training)
    return pair_metrics(torch.cat(losses).numpy(), torch.cat(correct).numpy(), documents)


def pair_metrics(
    loss: NDArray[np.floating], correct: NDArray[np.bool_], documents: NDArray[np.integer]
) -> PairMetrics:
    """Compute the metrics from the loss, the success and the document of each pair.

    The bootstrap resamples documents, because the pairs of a document share their topic.
    """
    _, document = np.unique(documents, return_inverse=True)
    pairs, hits = np.bincount(document), np.bincount(document, correct)
    [low], [high] = bootstrap_bounds(
        len(pairs), lambda drawn: hits[drawn].sum(keepdims=True) / pairs[drawn].sum()
    )
    mean_loss = float(loss.mean(dtype=np.float64))
    return PairMetrics(float(correct.mean()), mean_loss, len(correct), (low, high))


def prepare_encoder(model: TiedEncoder, token_types: int) -> tuple[TiedEncoder, list[str]]:
    """Add the token types and the head that next-sentence prediction needs.

    Returns:
        The encoder and the names of its new parts. Without new parts, the encoder is `model`.

    Raises:
        ValueError: the encoder has a classification head with other labels or another pooling.
    """
    head = None if model.classifier is None else model.classifier.config
    if head is not None and (head.labels, head.pooling) != (NEXT_SENTENCE_LABELS, "first"):
        raise ValueError(
            "the checkpoint must have no classification head, or a head with the labels "
            f"{' and '.join(NEXT_SENTENCE_LABELS)} and the pooling 'first' "
            f"(got {', '.join(head.labels)} and {head.pooling!r}); use another checkpoint"
        )
    new = []
    if token_types > model.config.type_vocab_size:
        new.append(f"embeddings of {token_types} token types")
    if head is None:
        new.append("next-sentence head")
    wanted = head or ClassifierConfig.next_sentence()
    return (extend_encoder(model, wanted, token_types) if new else model), new


def require_next_sentence_head(model: TiedEncoder) -> None:
    """Raise a ValueError for an encoder without a head for next-sentence prediction."""
    labels = () if model.classifier is None else model.classifier.config.labels
    if labels != NEXT_SENTENCE_LABELS:
        raise ValueError(
            f"the checkpoint must have a head with the labels {' and '.join(NEXT_SENTENCE_LABELS)} "
            f"(got {', '.join(labels) or 'no head'}); train one with "
            "`fillmask-train pretrain --next-sentence`"
        )


def summed_losses(
    model: TiedEncoder, masked: MaskedBatch, pairs: PairBatch
) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy of the masked tokens and of the labels, in nats.

    Args:
        model: encoder with a next-sentence head.
        pairs: token types, attention mask and labels of the pairs.
    """
    device = model.embeddings.word.weight.device
    selected_NT = masked.selected.to(device)
    first_NT = torch.zeros_like(selected_NT)
    first_NT[:, 0] = True  # a special token, which the masker never selects
    read_NT = selected_NT | first_NT
    hidden_RD = model.hidden(*_inputs(model, masked.input_ids, pairs), read_NT)
    is_first_R = first_NT[read_NT]
    token_loss = summed_cross_entropy(
        model.head(hidden_RD[~is_first_R]),
        model.output_projection(),
        model.head_bias,
        masked.labels.to(device),
    )
    head = model.get_submodule("classifier")
    logits_NL = head(hidden_RD[is_first_R])
    labels = pairs.labels.to(device)
    return token_loss, F.cross_entropy(logits_NL.float(), labels, reduction="sum")


def _inputs(
    model: TiedEncoder, input_ids: Tensor, pairs: PairBatch
) -> tuple[Tensor, Tensor, Tensor | None]:
    device = model.embeddings.word.weight.device
    types = pairs.token_types.to(device) if model.config.type_vocab_size else None
    return input_ids.to(device), pairs.attention_mask.to(device), types
