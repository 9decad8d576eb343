"""Sparse vectors for search, as what an encoder with a masked-language-model head learns.

The loss is the cross-entropy of a query's own document among the documents of its batch (Formal et
al. 2021, section 3.1) plus the FLOPS penalty (Paria et al. 2020, section 3), which estimates the
number of products that a search needs.

Shapes: N pairs, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.fine_tuning.config import SparseConfig
from fillmask_model.fine_tuning.pairs import PairBatch, Pairs, shuffled_pairs
from fillmask_model.fine_tuning.pooling import embed, pooled_logits
from fillmask_model.fine_tuning.search import evaluate_search
from fillmask_model.fine_tuning.tokens import TokenizedTexts, make_batch
from fillmask_model.optimization import autocast

SAMPLED_DOCUMENTS, START_WORDS = 32, 256


class SparseSearch:
    """Search of the document of each query, an objective of `fine_tune`."""

    def __init__(
        self,
        *,
        model: TiedEncoder,
        training: Pairs,
        validation: Pairs,
        config: SparseConfig,
        device: str = "cpu",
    ) -> None:
        if len(training) < config.batch_rows:
            raise ValueError(
                f"the training file must have at least {config.batch_rows} pairs, one batch (got "
                f"{len(training)}); add pairs or set --batch-rows"
            )
        self.model, self.device = model.to(device), torch.device(device)
        self.training, self.validation = training, validation
        self.steps_per_epoch = len(training) // config.batch_rows
        self._config = config
        if model.head_bias is not None:
            lower_bias(model, training.documents)

    def batches(self, epoch: int) -> Iterator[PairBatch]:
        return shuffled_pairs(self.training, self._config.batch_rows, self._config.seed, epoch)

    def loss(self, batch: PairBatch, step: int) -> Tensor:
        config = self._config
        with autocast(self.device):
            queries_NV = embed(self.model, batch.queries)
            documents_NV = embed(self.model, batch.documents)
        penalty = config.penalty_at(step, config.epochs * self.steps_per_epoch)
        return contrastive_loss(queries_NV, documents_NV, batch.equal.to(self.device)) + penalty * (
            config.query_penalty * flops(queries_NV) + config.document_penalty * flops(documents_NV)
        )

    def evaluate(self) -> dict[str, float]:
        return evaluate_search(self.model, self.validation)

    def describe(self, metrics: dict[str, float]) -> str:
        return (
            f"MRR@10 {metrics['mrr_at_10']:.4f}, recall@10 {metrics['recall_at_10']:.4f}, words "
            f"per query {metrics['query_words']:.0f}, per document {metrics['document_words']:.0f}"
        )


@torch.no_grad()
def lower_bias(model: TiedEncoder, documents: TokenizedTexts) -> None:
    """Lower the bias of all logits so that a document has at most START_WORDS words on average.

    The softmax of a masked-language model ignores a constant in all logits, so a new sparse encoder
    may give every word a weight. Its first steps would be slow and its scores very large.
    """
    model.eval()
    few = np.linspace(0, len(documents) - 1, SAMPLED_DOCUMENTS).astype(np.int64)
    logits_NV = pooled_logits(model, make_batch(documents, few))
    words = min(START_WORDS, logits_NV.shape[1] // 2)  # fewer of a small vocabulary
    model.head_bias.sub_(logits_NV.topk(words).values[:, -1].mean().clamp(min=0))


def contrastive_loss(queries_NV: Tensor, documents_NV: Tensor, equal_NN: Tensor) -> Tensor:
    """Return the mean cross-entropy of each query's own document among the documents, in nats.

    Args:
        equal_NN: boolean, True for documents that are no wrong answers to the query of a row.
    """
    scores_NN = queries_NV @ documents_NV.T
    own_N = torch.arange(len(scores_NN), device=scores_NN.device)
    others_NN = equal_NN.clone().fill_diagonal_(fill_value=False)
    return F.cross_entropy(scores_NN.masked_fill(others_NN, -torch.inf), own_N)


def flops(weights_NV: Tensor) -> Tensor:
    """Return the sum over the vocabulary of the squared mean weight of each word."""
    return weights_NV.mean(0).square().sum()
