"""Next-sentence prediction, BERT's second objective (Devlin et al. 2019, section 3.1, task 2).

The loss of a step is the mean cross-entropy of the masked tokens plus the mean cross-entropy of the
labels. Both losses come from one pass of the encoder over the masked input.

Shapes: N pairs, T tokens, R positions that a head reads, D d_model, L labels.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from fillmask_model.encoder.classifier import NEXT_SENTENCE_LABELS, ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.extension import extend_encoder
from fillmask_model.pretraining.evaluation import BATCH_ROWS
from fillmask_model.pretraining.masking import MaskedBatch
from fillmask_model.pretraining.pairs import PairBatch, Pairs


def evaluate_pairs(
    model: TiedEncoder, pairs: Pairs, count: int | None = None, batch_rows: int = BATCH_ROWS
) -> tuple[float, float]:
    """Score an encoder's predictions for pairs without masks, as in the service.

    Returns:
        The share of pairs with the correct label, and the mean cross-entropy of the labels in nats.

    Args:
        model: encoder with a next-sentence head, on any device. The function restores its training
            mode.
        count: number of pairs to evaluate. None for all.
    """
    number = len(pairs.ids[:count])
    was_training = model.training
    model.eval()
    correct, loss = 0, 0.0
    try:
        for start in range(0, number, batch_rows):
            batch = pairs.batch(slice(start, min(start + batch_rows, number)))
            with torch.inference_mode():
                logits_NL = model.classify(*_inputs(model, batch.input_ids, batch)).float().cpu()
            loss += float(F.cross_entropy(logits_NL, batch.labels, reduction="sum"))
            correct += int(logits_NL.argmax(-1).eq(batch.labels).sum())
    finally:
        model.train(was_training)
    return correct / number, loss / number


def prepare_encoder(model: TiedEncoder, token_types: int) -> TiedEncoder:
    """Return an encoder with the token types and the head that next-sentence prediction needs.

    Raises:
        ValueError: the encoder has a classification head with other labels or another pooling.
    """
    head = ClassifierConfig.next_sentence()
    if model.classifier is not None:
        head = model.classifier.config
        if (head.labels, head.pooling) != (NEXT_SENTENCE_LABELS, "first"):
            raise ValueError(
                "the checkpoint must have no classification head, or a head with the labels "
                f"{' and '.join(NEXT_SENTENCE_LABELS)} and the pooling 'first' "
                f"(got {', '.join(head.labels)} and {head.pooling!r}); use another checkpoint"
            )
    return extend_encoder(model, head, token_types)


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
    logits_MV = model.logits(hidden_RD[~is_first_R])
    logits_NL = model.get_submodule("classifier")(hidden_RD[is_first_R])
    token_loss, pair_loss = (
        F.cross_entropy(logits.float(), labels.to(device), reduction="sum")
        for logits, labels in ((logits_MV, masked.labels), (logits_NL, pairs.labels))
    )
    return token_loss, pair_loss


def _inputs(
    model: TiedEncoder, input_ids: Tensor, pairs: PairBatch
) -> tuple[Tensor, Tensor, Tensor | None]:
    device = model.embeddings.word.weight.device
    types = pairs.token_types.to(device) if model.config.type_vocab_size else None
    return input_ids.to(device), pairs.attention_mask.to(device), types
