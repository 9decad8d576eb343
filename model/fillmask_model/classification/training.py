"""Fine-tuning of an encoder with a classification head.

Shapes: N rows, L labels.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from fillmask_model.classification.config import ClassifyConfig
from fillmask_model.classification.data.labels import Targets
from fillmask_model.classification.loss import make_loss
from fillmask_model.classification.metrics import compute_metrics
from fillmask_model.classification.prediction import LabelledTexts, predict
from fillmask_model.encoder.classifier import ClassificationHead
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.fine_tuning.loop import fine_tune
from fillmask_model.fine_tuning.tokens import Batch, shuffled_batches
from fillmask_model.optimization import autocast


@dataclass(frozen=True, slots=True)
class Epoch:
    """Results of an epoch.

    Attributes:
        epoch: number of the epoch, from 1.
        steps: number of optimizer steps since the start of the run.
        training_loss: mean loss of the epoch's batches.
        validation_loss: mean loss over the validation rows, without class weights.
        metrics: metrics over the validation rows by name.
    """

    epoch: int
    steps: int
    training_loss: float
    validation_loss: float
    metrics: dict[str, float]

    def to_dict(self) -> dict[str, float]:
        """Return the results by their names in history.jsonl."""
        return {
            "epoch": self.epoch,
            "steps": self.steps,
            "training_loss": self.training_loss,
            "validation_loss": self.validation_loss,
            **{f"validation_{name}": value for name, value in self.metrics.items()},
        }


class FineTuning:
    """Fine-tuning run with a validation after each epoch.

    For regression, the run trains on standardised targets. `published_model` includes the scale and
    the mean of the targets in the output layer of the head.

    Args:
        model: encoder with a classification head. The run moves it to the device.
        class_weights: (L,) weights of the labels in the training loss. None for equal weights.
        device: "cpu" or "cuda".
    """

    def __init__(
        self,
        *,
        model: TiedEncoder,
        training: LabelledTexts,
        validation: LabelledTexts,
        config: ClassifyConfig,
        class_weights: NDArray[np.float32] | None = None,
        device: str = "cpu",
    ) -> None:
        if model.classifier is None:
            raise ValueError(
                "the encoder must have a classification head; pass classifier to TiedEncoder"
            )
        self.model, self.device = model.to(device), torch.device(device)
        self.training, self.validation, self.config = training, validation, config
        self._head = model.classifier
        self.problem_type = self._head.config.problem_type
        weights = None if class_weights is None else torch.from_numpy(class_weights).to(device)
        self._loss, self._plain_loss = (make_loss(self.problem_type, w) for w in (weights, None))
        self._mean, self._scale = 0.0, 1.0
        if self.problem_type == "regression":
            self._mean = float(training.targets.mean())
            self._scale = float(training.targets.std()) or 1.0

    def run(
        self,
        on_epoch: Callable[[Epoch], None],
        stop: Callable[[], bool] = lambda: False,
        description: str | None = None,
    ) -> bool:
        """Train for the configured number of epochs.

        Args:
            on_epoch: function that the run calls after each epoch.
            stop: stop condition, checked after each step.
            description: text before the progress bar.

        Returns:
            True for a complete run, False for a run that ended because `stop` returned True.

        Raises:
            FloatingPointError: the loss is infinite or NaN.
        """
        texts, config = self.training.texts, self.config

        def end_epoch(epoch: int, step: int, loss: float) -> str:
            result = self._validate(epoch, step, loss)
            on_epoch(result)
            return _sentence(result)

        with _dropout(self._head, config.dropout):
            return fine_tune(
                self.model,
                config,
                steps_per_epoch=-(-len(texts) // config.batch_rows),
                batches=lambda epoch: shuffled_batches(
                    texts, config.batch_rows, config.seed, epoch
                ),
                loss=self._training_loss,
                on_epoch=end_epoch,
                stop=stop,
                description=description,
            )

    def published_model(self) -> TiedEncoder:
        """Return a copy of the encoder whose logits are in the unit of the targets."""
        model = copy.deepcopy(self.model).eval()
        with torch.no_grad():
            model.get_parameter("classifier.output.weight").mul_(self._scale)
            model.get_parameter("classifier.output.bias").mul_(self._scale).add_(self._mean)
        return model

    def _training_loss(self, batch: Batch, _step: int) -> Tensor:
        targets = self._standardised(self.training.targets[batch.rows])
        with autocast(self.device):
            logits_NL = self.model.classify(*batch.inputs(self.device))
        loss: Tensor = self._loss(logits_NL.float(), targets)
        return loss

    def _validate(self, epoch: int, steps: int, training_loss: float) -> Epoch:
        targets = self.validation.targets
        with autocast(self.device):
            logits = predict(self.model, self.validation.texts)
        loss = self._plain_loss(torch.from_numpy(logits), self._standardised(targets).cpu())
        logits = logits * np.float32(self._scale) + np.float32(self._mean)
        metrics = compute_metrics(self.problem_type, logits, targets)
        return Epoch(epoch, steps, training_loss, float(loss), metrics)

    def _standardised(self, targets: Targets) -> Tensor:
        if self.problem_type == "regression":
            targets = (targets - np.float32(self._mean)) / np.float32(self._scale)
        return torch.from_numpy(targets).to(self.device)


@contextmanager
def _dropout(head: ClassificationHead, share: float) -> Iterator[None]:
    """Apply dropout to the pooled vectors of a head in training mode within a `with` block."""

    def drop(module: torch.nn.Module, inputs: tuple[Tensor]) -> Tensor:
        return F.dropout(inputs[0], share, training=module.training)

    hook = head.register_forward_pre_hook(drop)
    try:
        yield
    finally:
        hook.remove()


def _sentence(result: Epoch) -> str:
    metrics = ", ".join(f"{name} {value:.4f}" for name, value in result.metrics.items())
    return (
        f"epoch {result.epoch}: training loss {result.training_loss:.4f}, "
        f"validation loss {result.validation_loss:.4f}, {metrics}"
    )
