"""Training of a sparse encoder on pairs of queries and documents.

The loss is the cross-entropy of a query's own document among the documents of its batch (Formal et
al. 2021, section 3.1) plus the FLOPS penalty (Paria et al. 2020, section 3), which estimates the
number of products that a search needs.

Shapes: N pairs, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.fine_tuning.loop import fine_tune
from fillmask_model.fine_tuning.tokens import TokenizedTexts, make_batch
from fillmask_model.optimization import autocast
from fillmask_model.sparse.config import SparseConfig
from fillmask_model.sparse.pairs import PairBatch, PairTokens, shuffled_pairs
from fillmask_model.sparse.pooling import embed, pooled_logits
from fillmask_model.sparse.search import SearchMetrics, evaluate_search

SAMPLED_DOCUMENTS, START_WORDS = 32, 256


@dataclass(frozen=True, slots=True)
class Epoch:
    """Results of an epoch.

    Attributes:
        epoch: number of the epoch, from 1.
        steps: number of optimizer steps since the start of the run.
        training_loss: mean loss of the epoch's batches.
        metrics: search with the validation pairs.
    """

    epoch: int
    steps: int
    training_loss: float
    metrics: SearchMetrics

    def to_dict(self) -> dict[str, float]:
        """Return the results by their names in history.jsonl."""
        return {
            "epoch": self.epoch,
            "steps": self.steps,
            "training_loss": self.training_loss,
            **{f"validation_{name}": value for name, value in self.metrics.to_dict().items()},
        }


class SparseTraining:
    """Training run with a search among the validation pairs after each epoch.

    Args:
        model: encoder with a masked-language-model head. The run moves it to the device.
        device: "cpu" or "cuda".

    Raises:
        ValueError: the training pairs do not fill a batch.
    """

    def __init__(
        self,
        *,
        model: TiedEncoder,
        training: PairTokens,
        validation: PairTokens,
        config: SparseConfig,
        device: str = "cpu",
    ) -> None:
        if len(training) < config.batch_rows:
            raise ValueError(
                f"the training file must have at least {config.batch_rows} pairs, one batch (got "
                f"{len(training)}); add pairs or set --batch-rows"
            )
        self.model, self.device = model.to(device), torch.device(device)
        self.training, self.validation, self.config = training, validation, config
        self.pooling = SparsePooling()
        self._steps_per_epoch = len(training) // config.batch_rows
        if model.head_bias is not None:
            lower_bias(model, training.documents)

    def run(
        self, on_epoch: Callable[[Epoch], None], stop: Callable[[], bool] = lambda: False
    ) -> bool:
        """Train for the configured number of epochs.

        Args:
            on_epoch: function that the run calls after each epoch.
            stop: stop condition, checked after each step.

        Returns:
            True for a complete run, False for a run that ended because `stop` returned True.

        Raises:
            FloatingPointError: the loss is infinite or NaN.
        """
        config = self.config

        def end_epoch(epoch: int, step: int, loss: float) -> str:
            metrics = evaluate_search(self.model, self.pooling, self.validation)
            result = Epoch(epoch, step, loss, metrics)
            on_epoch(result)
            return sentence(result)

        return fine_tune(
            self.model,
            config,
            steps_per_epoch=self._steps_per_epoch,
            batches=lambda epoch: shuffled_pairs(
                self.training, config.batch_rows, config.seed, epoch
            ),
            loss=self._loss,
            on_epoch=end_epoch,
            stop=stop,
        )

    def _loss(self, batch: PairBatch, step: int) -> Tensor:
        config = self.config
        with autocast(self.device):
            queries_NV, documents_NV = (
                embed(self.model, self.pooling, one) for one in (batch.queries, batch.documents)
            )
        penalty = config.penalty_at(step, config.epochs * self._steps_per_epoch)
        return contrastive_loss(queries_NV, documents_NV, batch.equal.to(self.device)) + penalty * (
            config.query_penalty * flops(queries_NV) + config.document_penalty * flops(documents_NV)
        )


@torch.no_grad()
def lower_bias(model: TiedEncoder, documents: TokenizedTexts) -> None:
    """Lower the bias of all logits so that a document has at most START_WORDS words on average.

    The softmax of a masked-language model ignores a constant in all logits, so a new sparse encoder
    may give every word a weight. Its first steps would be slow and its scores very large.

    Args:
        model: encoder with a bias of the logits.
        documents: documents, of which the function reads a few.
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
    others_NN = equal_NN.clone()
    others_NN[own_N, own_N] = False
    return F.cross_entropy(scores_NN.masked_fill(others_NN, -torch.inf), own_N)


def flops(weights_NV: Tensor) -> Tensor:
    """Return the sum over the vocabulary of the squared mean weight of each word."""
    return weights_NV.mean(0).square().sum()


def sentence(result: Epoch) -> str:
    """Describe an epoch for the terminal."""
    metrics = result.metrics
    return (
        f"epoch {result.epoch}: training loss {result.training_loss:.4f}, validation MRR@10 "
        f"{metrics.mrr_at_10:.4f}, recall@10 {metrics.recall_at_10:.4f}, words per query "
        f"{metrics.query_words:.0f}, per document {metrics.document_words:.0f}"
    )
