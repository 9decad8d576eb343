"""Checkpoint and metrics of the best epoch of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fillmask_model.bootstrap import CONFIDENCE
from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.classification.metrics import LOWER_IS_BETTER, bootstrap_intervals
from fillmask_model.classification.prediction import LabelledTexts, predict
from fillmask_model.classification.report import (
    CONFUSION_NAME,
    CURVE_NAME,
    METRICS_NAME,
    describe_predictions,
    draw_confusion,
    draw_curve,
    write_json,
)
from fillmask_model.classification.training import Epoch, FineTuning
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.fine_tuning.history import HISTORY_NAME, NO_EPOCH, append_history


class BestCheckpoint:
    """Writer of the checkpoint and the metrics of the best epoch.

    Args:
        directory: directory for the checkpoint, history.jsonl, metrics.json and the plots.
        metric: validation metric that selects the best epoch.
    """

    def __init__(
        self,
        directory: Path,
        run: FineTuning,
        classifier: ClassifierConfig,
        tokenizer_json: bytes,
        metric: str,
    ) -> None:
        self.directory, self.run, self.classifier = directory, run, classifier
        self.tokenizer_json, self.metric = tokenizer_json, metric
        self.epochs: list[Epoch] = []
        self.best: Epoch | None = None
        directory.mkdir(parents=True, exist_ok=True)
        for name in (HISTORY_NAME, METRICS_NAME):  # of an earlier run
            (directory / name).unlink(missing_ok=True)

    def add_epoch(self, epoch: Epoch) -> None:
        """Write the results of an epoch.

        If the epoch is the best so far, its model replaces the checkpoint.
        """
        self.epochs.append(epoch)
        # the checkpoint first, because it shows that the other files come from fillmask
        if self.best is None or self._rank(epoch) > self._rank(self.best):
            self.best = epoch
            model = self.run.published_model()
            save_checkpoint(self.directory, model, self.tokenizer_json, fills=False)
        append_history(self.directory, epoch.to_dict())
        draw_curve(self.directory / CURVE_NAME, self.epochs, self.run.problem_type)

    def _rank(self, epoch: Epoch) -> tuple[float, float]:
        """Return a key that is larger for a better epoch.

        Between epochs with the same value, the epoch with the lower validation loss is better.
        """
        value = epoch.metrics[self.metric]
        return (-value if self.metric in LOWER_IS_BETTER else value, -epoch.validation_loss)

    def write_metrics(self, test: LabelledTexts | None) -> dict[str, Any]:
        """Write metrics.json with the results of the saved checkpoint, computed in float32.

        Args:
            test: rows for the test metrics and their confidence intervals. None for no test.

        Returns:
            Content of metrics.json.

        Raises:
            ValueError: no epoch has ended.
        """
        if self.best is None:
            raise ValueError(NO_EPOCH)
        model = load_checkpoint(self.directory).model.to(self.run.device)
        problem_type = self.classifier.problem_type
        metrics: dict[str, Any] = {
            "problem_type": problem_type,
            "best_epoch": self.best.epoch,
            "best_by": self.metric,
            "epochs": len(self.epochs),
            "training_rows": len(self.run.training.texts),
        }
        for name, rows in (("validation", self.run.validation), ("test", test)):
            if rows is None:
                continue
            logits = predict(model, rows.texts)
            metrics[name] = describe_predictions(self.classifier, logits, rows.targets)
            if name == "test":
                intervals = bootstrap_intervals(problem_type, logits, rows.targets)
                metrics[name] |= {"confidence": CONFIDENCE, "intervals": intervals}
            if matrix := metrics[name].get("confusion_matrix"):
                # the plot of the test rows replaces the plot of the validation rows
                draw_confusion(self.directory / CONFUSION_NAME, matrix, self.classifier.labels)
        write_json(self.directory / METRICS_NAME, metrics)
        return metrics
