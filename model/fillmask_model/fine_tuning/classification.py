"""Labels or a number for a text, or labels of its tokens, as what an encoder learns.

Shapes: N rows, T tokens, L labels.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.extension import extend_encoder
from fillmask_model.fine_tuning.config import ClassifyConfig
from fillmask_model.fine_tuning.entities import IGNORED
from fillmask_model.fine_tuning.labels import TOKENS, Targets
from fillmask_model.fine_tuning.metrics import compute_metrics, problem_of
from fillmask_model.fine_tuning.tokens import (
    Batch,
    TokenizedTexts,
    shuffled_batches,
    sorted_batches,
)
from fillmask_model.optimization import autocast

_ROWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True, eq=False)
class LabelledTexts:
    texts: TokenizedTexts
    targets: Targets


def new_classifier(
    start: TiedEncoder, head: ClassifierConfig, seed: int, *, from_scratch: bool
) -> TiedEncoder:
    """Return an encoder with a new head, and with random weights if it starts from scratch."""
    torch.manual_seed(seed)
    start.classifier = None  # a head of its own would stay
    return TiedEncoder(start.config, head) if from_scratch else extend_encoder(start, head)


class Classification:
    """Labels or numbers of texts, or labels of their tokens, an objective of `fine_tune`.

    For regression, the loss is that of standardised targets.
    """

    def __init__(
        self,
        *,
        model: TiedEncoder,
        head: ClassifierConfig,
        training: LabelledTexts,
        validation: LabelledTexts,
        config: ClassifyConfig,
        device: str = "cpu",
    ) -> None:
        self.model, self.device = model.to(device), torch.device(device)
        self.head, self.problem_type = head, problem_of(head)
        self.training, self.validation = training, validation
        self.steps_per_epoch = -(-len(training.texts) // config.batch_rows)
        self._config = config
        self._mean, self._scale = 0.0, 1.0
        if self.problem_type == "regression":
            self._mean = float(training.targets.mean())
            self._scale = float(training.targets.std()) or 1.0

        def drop(module: torch.nn.Module, inputs: tuple[Tensor]) -> Tensor:
            return F.dropout(inputs[0], config.dropout, training=module.training)

        model.get_submodule("classifier").register_forward_pre_hook(drop)

    def batches(self, epoch: int) -> Iterator[Batch]:
        config = self._config
        return shuffled_batches(self.training.texts, config.batch_rows, config.seed, epoch)

    def loss(self, batch: Batch, step: int) -> Tensor:  # noqa: ARG002 - the same at every step
        targets = self._standardised(self.training.targets[batch.rows]).to(self.device)
        with autocast(self.device):
            logits = self.model.classify(*batch.inputs(self.device))
        return label_loss(self.problem_type, logits.float(), targets)

    def evaluate(self) -> dict[str, float]:
        targets = self.validation.targets
        with autocast(self.device):
            logits = predict(self.model, self.validation.texts)
        expected = self._standardised(targets)
        loss = label_loss(self.problem_type, torch.from_numpy(logits), expected)
        logits = logits * np.float32(self._scale) + np.float32(self._mean)
        return {"loss": float(loss)} | compute_metrics(self.problem_type, logits, targets)

    def describe(self, metrics: dict[str, float]) -> str:
        return ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())

    def published_model(self) -> TiedEncoder:
        """Return a copy of the encoder whose logits are in the unit of the targets."""
        model = copy.deepcopy(self.model).eval()
        with torch.no_grad():
            model.get_parameter("classifier.output.weight").mul_(self._scale)
            model.get_parameter("classifier.output.bias").mul_(self._scale).add_(self._mean)
        return model

    def _standardised(self, targets: Targets) -> Tensor:
        if self.problem_type == "regression":
            targets = (targets - np.float32(self._mean)) / np.float32(self._scale)
        return torch.from_numpy(targets)


def label_loss(problem_type: str, logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss over the rows, or over the tokens that are not special.

    Args:
        logits: (N, L), or (N, T, L) for labels of tokens.
    """
    if problem_type == TOKENS:
        own_NT = targets[:, : logits.shape[1]].long()
        return F.cross_entropy(logits.flatten(0, 1), own_NT.flatten(), ignore_index=IGNORED)
    if problem_type == "single_label_classification":
        return F.cross_entropy(logits, targets)
    if problem_type == "multi_label_classification":
        return F.binary_cross_entropy_with_logits(logits, targets)
    return F.mse_loss(logits.squeeze(1), targets)


def predict(model: TiedEncoder, texts: TokenizedTexts) -> NDArray[np.float32]:
    """Return the logits (N, L) of texts, or (N, T, L) of their tokens, in evaluation mode."""
    model.eval()
    device = next(model.parameters()).device
    logits, rows = [], []
    with torch.inference_mode():
        for batch in sorted_batches(texts, _ROWS_AT_ONCE):
            logits.append(model.classify(*batch.inputs(device)).float().cpu().numpy())
            rows.append(batch.rows)
    if logits[0].ndim == 3:  # of batches with different numbers of tokens
        widest = max(one.shape[1] for one in logits)
        logits = [np.pad(one, ((0, 0), (0, widest - one.shape[1]), (0, 0))) for one in logits]
    return np.concatenate(logits)[np.argsort(np.concatenate(rows))]
